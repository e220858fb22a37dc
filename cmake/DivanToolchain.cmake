# Compiler settings of all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# "Dev" is the build type of the tests. -O1 compiles about as fast as -O0 and runs several times faster.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -fno-omit-frame-pointer" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG" CACHE STRING "" FORCE)

# simdjson selects its kernel at compile time. The one for SSE 4.2 with carry-less multiplication, which x86-64 servers
# have had since 2010, is several times faster than the portable one.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=westmere)
endif()

# Two builds of the same sources have the same bytes, wherever their folders are.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
                    -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # These warnings have false positives: in the standard library of GCC 12, and the last one for views in GCC 13 and 14.
  add_compile_options(-Wno-restrict -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized
                      -Wno-stringop-overflow -Wno-dangling-reference)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
  # It has coroutines, but does not say so to the standard library of GCC.
  add_compile_definitions(__cpp_impl_coroutine=201902L)
endif()
if(DIVAN_WARNINGS_ARE_ERRORS)
  add_compile_options(-Werror)
endif()

if(DIVAN_SANITIZE)
  add_compile_options(-fsanitize=${DIVAN_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DIVAN_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Clang cannot compile coroutines with it (https://github.com/llvm/llvm-project/issues/49689).
    add_compile_options(-fno-sanitize=function)
  endif()
endif()

if(DIVAN_FUZZ)
  # Modules and programs can share a precompiled header only if both are compiled with the same options. ccache can
  # store it only without its time stamp.
  set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_compile_options(-fsanitize=fuzzer-no-link "SHELL:-Xclang -fno-pch-timestamp")
endif()

find_program(DIVAN_CCACHE ccache)
if(DIVAN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DIVAN_CCACHE})
  # ccache can store precompiled headers of GCC only with this option.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

find_program(DIVAN_MOLD mold)
find_program(DIVAN_LLD ld.lld)
if(CMAKE_CROSSCOMPILING)
  # GCC has a linker for its target, and does not find the others.
elseif(DIVAN_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(DIVAN_LLD)
  add_link_options(-fuse-ld=lld)
endif()
