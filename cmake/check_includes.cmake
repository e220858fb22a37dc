# cmake -DMODULES=FILE -DSOURCE_DIR=DIR -DSTAMP=FILE -P check_includes.cmake
#
# Fails if a module includes a header of a module that is not among its DEPS or theirs. MODULES has a line for each
# module: its folder below divan/, then the folders of its DEPS. Tests, benchmarks and their shared headers (*_test.cc,
# *_bench.cc, *testing.h, test_*.h) may include any module.
cmake_minimum_required(VERSION 3.25)
file(STRINGS ${MODULES} lines)
set(modules "")
foreach(line IN LISTS lines)
  string(REPLACE " " ";" words "${line}")
  list(POP_FRONT words module)
  list(APPEND modules ${module})
  set(uses_${module} ${module})
  foreach(used IN LISTS words)
    list(APPEND uses_${module} ${uses_${used}}) # declared before, so complete
  endforeach()
endforeach()
list(SORT modules ORDER DESCENDING) # kv/embedded before kv

# The module that a path below divan/ belongs to.
function(module_of path result)
  foreach(module IN LISTS modules)
    string(FIND ${path} ${module}/ at)
    if(at EQUAL 0)
      set(${result} ${module} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

set(violations 0)
file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR}/divan ${SOURCE_DIR}/divan/*.h ${SOURCE_DIR}/divan/*.cc)
list(FILTER files EXCLUDE REGEX "(_test\\.cc|_bench\\.cc|testing\\.h|/test_[a-z_]*\\.h)$|^kv/[a-z]+/testing/")
foreach(file IN LISTS files)
  module_of(${file} module)
  if(module STREQUAL "")
    continue() # not part of a module
  endif()
  file(STRINGS ${SOURCE_DIR}/divan/${file} includes REGEX "^#include \"divan/")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"divan/([^\"]*)\".*" "\\1" included "${include}")
    module_of(${included} used)
    if(used AND NOT used IN_LIST uses_${module})
      message(NOTICE "divan/${file}: includes divan/${included}, but ${module} does not depend on ${used}.")
      math(EXPR violations "${violations} + 1")
    endif()
  endforeach()
endforeach()
if(violations)
  message(FATAL_ERROR "A module includes headers of modules that are not among its DEPS in CMakeLists.txt.")
endif()
file(TOUCH ${STAMP})
