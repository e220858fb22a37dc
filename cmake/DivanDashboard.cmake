# The dashboard (web/) and the description of the HTTP API (docs/openapi/) as parts of the program, if Node.js 18 or newer and npm are there to build it.
option(DIVAN_DASHBOARD "Build the dashboard and /_openapi, which need Node.js and the npm packages of web/" ON)

# Sets `result` to the reason why the dashboard cannot be built; empty: it can.
function(divan_dashboard_obstacle result)
  set(${result} "" PARENT_SCOPE)
  find_program(DIVAN_NODE node)
  find_program(DIVAN_NPM npm)
  if(NOT DIVAN_DASHBOARD)
    set(${result} "DIVAN_DASHBOARD is OFF" PARENT_SCOPE)
  elseif(NOT DIVAN_NODE OR NOT DIVAN_NPM)
    set(${result} "node or npm is not installed" PARENT_SCOPE)
  else()
    execute_process(COMMAND ${DIVAN_NODE} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT version MATCHES "^v([0-9]+)" OR CMAKE_MATCH_1 LESS 18)
      set(${result} "Node.js is older than 18: ${version}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# Adds the functions of app/embedded_files.h to `target`.
function(divan_dashboard target)
  set(files ${CMAKE_BINARY_DIR}/embedded_files.cc)
  divan_dashboard_obstacle(obstacle)
  if(obstacle)
    message(WARNING "divan is built without its dashboard and /_openapi: ${obstacle}.")
    set(files ${CMAKE_BINARY_DIR}/no_embedded_files.cc)
    file(CONFIGURE OUTPUT ${files} CONTENT
         "#include \"divan/app/embedded_files.h\"\n\nnamespace divan::app {\nstd::span<const api::EmbeddedFile> dashboard_files() { return {}; }\nstd::span<const api::EmbeddedFile> openapi_files() { return {}; }\n}\n")
  else()
    set(web ${CMAKE_SOURCE_DIR}/web)
    set(openapi ${CMAKE_SOURCE_DIR}/docs/openapi)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/* ${web}/public/* ${openapi}/*.mjs)
    # npm writes this file last.
    add_custom_command(
      OUTPUT ${web}/node_modules/.package-lock.json
      DEPENDS ${web}/package-lock.json
      COMMAND ${DIVAN_NPM} ci --no-audit --no-fund --loglevel=error
      COMMAND ${CMAKE_COMMAND} -E touch ${web}/node_modules/.package-lock.json
      WORKING_DIRECTORY ${web}
      COMMENT "Installing the npm packages of the dashboard")
    add_custom_command(
      OUTPUT ${files}
      DEPENDS ${web}/node_modules/.package-lock.json ${sources} ${web}/index.html ${web}/vite.config.ts ${web}/tsconfig.json
              ${web}/package.json ${web}/embed.mjs ${CMAKE_SOURCE_DIR}/CMakeLists.txt
      COMMAND ${DIVAN_NPM} run build --silent -- --outDir ${CMAKE_BINARY_DIR}/web --emptyOutDir --logLevel warn
      COMMAND ${DIVAN_NODE} ${openapi}/build.mjs ${CMAKE_BINARY_DIR}/openapi.json
      COMMAND ${DIVAN_NODE} ${web}/embed.mjs ${CMAKE_BINARY_DIR}/web ${CMAKE_BINARY_DIR}/openapi.json ${files}
      WORKING_DIRECTORY ${web}
      COMMENT "Building the dashboard and the description of the API")
  endif()
  target_sources(${target} PRIVATE ${files})
  set_source_files_properties(${files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON
                              COMPILE_OPTIONS -Wno-overlength-strings)
endfunction()
