# Dependencies of the modules. Names that depend on a distribution's version of a library are only here and in
# DivanProgramDependencies.cmake (Debian 12: Boost 1.81, SpiderMonkey 102).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(simdjson REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(absl REQUIRED)
find_package(RocksDB REQUIRED)
find_package(ICU REQUIRED COMPONENTS i18n uc)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
# It has -pthread, without which the precompiled headers are compiled.
set_target_properties(PkgConfig::re2 PROPERTIES INTERFACE_COMPILE_OPTIONS "")
