# Compiles the sources of a target in batches, if DIVAN_BATCHES: a batch is one file that includes its sources, so that their
# headers are parsed and their templates instantiated once. Sources of a batch share their anonymous namespaces.
set(DIVAN_BATCH_SIZE 8)
function(divan_compile_in_batches target)
  if(NOT DIVAN_BATCHES)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${DIVAN_BATCH_SIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes the sources of a batch for headers, in which anonymous namespaces are mistakes. divan_headers checks these.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# divan_module(name DEPS modules... LIBS libraries...)
#
# One folder below divan/ is one static library of every *.cc in it, except *_test.cc and *_bench.cc, which
# are linked into divan_tests and divan_bench. DEPS are the modules of lower layers that it may use.
#
# Names in the anonymous namespaces of a module's tests must differ: a batch of divan_tests has up to eight of them, by name,
# and none of another module, so a new test moves tests of its own module only.
function(divan_module name)
  cmake_parse_arguments(MODULE "" "" "DEPS;LIBS" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/divan/${name})
  string(REPLACE "/" "_" id ${name})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|_main|/main)\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_library(divan_${id} STATIC ${sources})
  add_library(divan::${id} ALIAS divan_${id})
  target_include_directories(divan_${id} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                                $<INSTALL_INTERFACE:include>)
  target_compile_features(divan_${id} PUBLIC cxx_std_20)
  foreach(dep ${MODULE_DEPS})
    string(REPLACE "/" "_" dep_id ${dep})
    if(NOT TARGET divan_${dep_id})
      message(FATAL_ERROR "divan_module(${name}): there is no module ${dep}, or it is declared after ${name}.")
    endif()
    target_link_libraries(divan_${id} PUBLIC divan_${dep_id})
  endforeach()
  target_link_libraries(divan_${id} PUBLIC ${MODULE_LIBS} Threads::Threads)
  set_target_properties(divan_${id} PROPERTIES EXPORT_NAME ${id})
  if(name STREQUAL "base")
    target_precompile_headers(divan_base PRIVATE ${CMAKE_SOURCE_DIR}/divan/base/precompiled.h)
  else()
    target_precompile_headers(divan_${id} REUSE_FROM divan_base)
  endif()
  string(REPLACE ";" " " dependencies "${name};${MODULE_DEPS}")
  set_property(GLOBAL APPEND PROPERTY DIVAN_MODULES divan_${id})
  set_property(GLOBAL APPEND PROPERTY DIVAN_MODULE_DEPENDENCIES "${dependencies}")
  set_property(GLOBAL APPEND PROPERTY DIVAN_TEST_SOURCES ${tests})
  set_property(GLOBAL APPEND PROPERTY DIVAN_BENCH_SOURCES ${benches})
  set(count 0)
  foreach(test IN LISTS tests)
    math(EXPR batch "${count} / ${DIVAN_BATCH_SIZE}")
    math(EXPR count "${count} + 1")
    set_property(SOURCE ${test} PROPERTY UNITY_GROUP ${id}_${batch})
  endforeach()
endfunction()

# A part of every build: checks that modules include headers of their dependencies only, and that no files include each
# other in a circle.
function(divan_check_includes)
  get_property(dependencies GLOBAL PROPERTY DIVAN_MODULE_DEPENDENCIES)
  list(JOIN dependencies "\n" lines)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/modules.txt CONTENT "${lines}\n")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/divan/*.h ${CMAKE_SOURCE_DIR}/divan/*.cc
       ${CMAKE_SOURCE_DIR}/sim/*.h ${CMAKE_SOURCE_DIR}/sim/*.cc)
  foreach(check includes circles)
    set(stamp ${CMAKE_BINARY_DIR}/${check}.checked)
    add_custom_command(
      OUTPUT ${stamp}
      COMMAND ${CMAKE_COMMAND} -DMODULES=${CMAKE_BINARY_DIR}/modules.txt -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DSTAMP=${stamp}
              -P ${CMAKE_SOURCE_DIR}/cmake/check_${check}.cmake
      DEPENDS ${sources} ${CMAKE_BINARY_DIR}/modules.txt ${CMAKE_SOURCE_DIR}/cmake/check_${check}.cmake
      COMMENT "Checking what files include: ${check}"
      VERBATIM)
    list(APPEND stamps ${stamp})
  endforeach()
  add_custom_target(divan_includes ALL DEPENDS ${stamps})
  add_dependencies(divan_base divan_includes)
endfunction()

# The target divan_headers: each header compiles alone, without the precompiled one. Those of divan-js are compiled with
# its options, not with the modules of the server.
function(divan_check_headers)
  get_property(modules GLOBAL PROPERTY DIVAN_MODULES)
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/divan/*.h
       ${CMAKE_SOURCE_DIR}/sim/*.h)
  list(FILTER headers EXCLUDE REGEX "^divan/base/precompiled")
  set(sandbox_sources "")
  set(sources "")
  foreach(header IN LISTS headers)
    set(source ${CMAKE_BINARY_DIR}/headers/${header}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"  // IWYU pragma: keep\n")
    if(header MATCHES "^divan/js/sandbox/")
      list(APPEND sandbox_sources ${source})
    else()
      list(APPEND sources ${source})
    endif()
  endforeach()
  add_library(divan_sandbox_headers OBJECT EXCLUDE_FROM_ALL ${sandbox_sources})
  target_include_directories(divan_sandbox_headers PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(divan_sandbox_headers PRIVATE PkgConfig::mozjs PkgConfig::seccomp)
  target_compile_options(divan_sandbox_headers PRIVATE -O0 -g0 -fno-rtti)
  add_library(divan_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  add_dependencies(divan_headers divan_sandbox_headers)
  target_link_libraries(divan_headers PRIVATE ${modules} divan_sim GTest::gtest GTest::gmock rapidcheck)
  target_compile_options(divan_headers PRIVATE -O0 -g0 -Wno-sign-conversion)
  target_compile_definitions(divan_headers PRIVATE DIVAN_JS_BINARY="")
endfunction()

# ctest: the unit tests of each module, the simulation, the end-to-end tests of each file, the headers and the fuzz
# targets. ctest -L unit
function(divan_add_tests)
  function(add name label)
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS ${label})
  endfunction()
  get_property(tests GLOBAL PROPERTY DIVAN_TEST_SOURCES)
  set(folders "")
  foreach(test IN LISTS tests)
    get_filename_component(folder ${test} DIRECTORY)
    list(APPEND folders ${folder})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders ITEMS ${CMAKE_SOURCE_DIR}/sim)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${folder})
    add(${name} unit ${CMAKE_COMMAND} -DTESTS=$<TARGET_FILE:divan_tests> -DFOLDER=${folder}
        -P ${CMAKE_SOURCE_DIR}/cmake/run_unit_tests.cmake)
  endforeach()
  add(divan-sim sim $<TARGET_FILE:divan-sim> --seeds 100)
  file(GLOB files RELATIVE ${CMAKE_SOURCE_DIR}/test CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/test/*_test.mjs)
  foreach(file IN LISTS files)
    add(test/${file} e2e test/run.sh ${CMAKE_BINARY_DIR} ${file})
  endforeach()
  add(test/crash e2e test/crash/run.sh ${CMAKE_BINARY_DIR})
  add(headers headers ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target divan_headers)
  add(fuzz fuzz fuzz/run.sh)
endfunction()

# The programs that link the modules: divan, divan_tests and divan_bench. fuzz/CMakeLists.txt has the fuzz targets.
function(divan_executables)
  get_property(modules GLOBAL PROPERTY DIVAN_MODULES)
  get_property(tests GLOBAL PROPERTY DIVAN_TEST_SOURCES)
  get_property(benches GLOBAL PROPERTY DIVAN_BENCH_SOURCES)

  if(TARGET divan_app AND NOT DIVAN_FUZZ)
    add_executable(divan divan/app/main.cc)
    target_link_libraries(divan PRIVATE divan_app)
    # Transactions are allocated by one thread and freed by another, for which the standard allocator is slow. The
    # sanitizers need their own allocator.
    if(NOT DIVAN_SANITIZE)
      target_link_libraries(divan PRIVATE PkgConfig::jemalloc)
    endif()
  endif()

  if(DIVAN_TESTS)
    add_executable(divan_tests ${tests})
    target_link_libraries(divan_tests PRIVATE ${modules} GTest::gtest GTest::gmock GTest::gtest_main rapidcheck)
    target_compile_options(divan_tests PRIVATE -Wno-sign-conversion)
    target_precompile_headers(divan_tests PRIVATE ${CMAKE_SOURCE_DIR}/divan/base/precompiled_test.h)
    divan_compile_in_batches(divan_tests)
    set_target_properties(divan_tests PROPERTIES UNITY_BUILD_MODE GROUP)
    # The tests of the kv modules alone, for work on an engine.
    set(kv_tests ${tests})
    list(FILTER kv_tests INCLUDE REGEX "/kv/(conformance|fdb|model)/")
    add_executable(kv_conformance_test EXCLUDE_FROM_ALL ${kv_tests})
    target_link_libraries(kv_conformance_test PRIVATE divan_kv_conformance divan_kv_model divan_kv_embedded_testing
                                                      GTest::gtest GTest::gmock GTest::gtest_main)
    target_precompile_headers(kv_conformance_test PRIVATE ${CMAKE_SOURCE_DIR}/divan/base/precompiled_test.h)
    target_compile_options(kv_conformance_test PRIVATE -Wno-sign-conversion)
    if(TARGET divan-js)
      target_compile_definitions(divan_tests PRIVATE DIVAN_JS_BINARY="$<TARGET_FILE:divan-js>")
      add_dependencies(divan_tests divan-js)
    endif()
  endif()

  if(DIVAN_BENCHMARKS)
    add_executable(divan_bench ${benches})
    target_link_libraries(divan_bench PRIVATE ${modules} benchmark::benchmark benchmark::benchmark_main
                                              PkgConfig::jemalloc PkgConfig::lmdb)
  endif()
endfunction()

# The core is a library: find_package(divan), then #include <divan/jobs/queue.h>.
function(divan_install)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  get_property(modules GLOBAL PROPERTY DIVAN_MODULES)
  list(FILTER modules EXCLUDE REGEX "_(conformance|model|reference|testing|app)$") # only for tests and the server
  if(NOT TARGET divan)
    return()
  endif()
  install(TARGETS divan divan-js RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
  install(TARGETS ${modules} EXPORT divan-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY divan/ DESTINATION include/divan FILES_MATCHING PATTERN "*.h")
  install(EXPORT divan-targets NAMESPACE divan:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/divan)
  install(FILES cmake/DivanDependencies.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/divan)
  configure_package_config_file(cmake/divan-config.cmake.in ${CMAKE_BINARY_DIR}/divan-config.cmake
                                INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/divan)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/divan-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/divan-config.cmake ${CMAKE_BINARY_DIR}/divan-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/divan)
endfunction()
