# Dependencies of the programs, tests and benchmarks. Programs that use the modules as a library need none of these.
find_package(CLI11 REQUIRED)
pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET jemalloc)
pkg_search_module(mozjs REQUIRED IMPORTED_TARGET mozjs-128 mozjs-115 mozjs-102)

if(DIVAN_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(DIVAN_BENCHMARKS)
  find_package(benchmark REQUIRED)
  pkg_check_modules(lmdb REQUIRED IMPORTED_TARGET lmdb)
endif()
