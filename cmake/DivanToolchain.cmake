# Compiler settings that hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# "Dev": what the tests are built with. -O1 compiles about as fast as -O0 and runs several times faster.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -fno-omit-frame-pointer" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG" CACHE STRING "" FORCE)

# simdjson picks its kernel when it is compiled: SSE 4.2 with carry-less multiplication, which every x86-64 server since
# 2010 has, is several times faster than its portable one.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=westmere)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
                    -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The checkers below report false positives inside the standard library of GCC 12.
  add_compile_options(-Wno-restrict -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized
                      -Wno-stringop-overflow)
endif()
if(DIVAN_WARNINGS_ARE_ERRORS)
  add_compile_options(-Werror)
endif()

if(DIVAN_SANITIZE)
  add_compile_options(-fsanitize=${DIVAN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DIVAN_SANITIZE})
endif()

if(DIVAN_FUZZ)
  # A precompiled header serves modules and programs only if both are compiled alike; without its time stamp ccache
  # keeps it.
  set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_compile_options(-fsanitize=fuzzer-no-link "SHELL:-Xclang -fno-pch-timestamp")
endif()

find_program(DIVAN_CCACHE ccache)
if(DIVAN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DIVAN_CCACHE})
  # ccache keeps precompiled headers only with this option of GCC.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

find_program(DIVAN_MOLD mold)
find_program(DIVAN_LLD ld.lld)
if(DIVAN_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(DIVAN_LLD)
  add_link_options(-fuse-ld=lld)
endif()
