# The Debian package of the server: `cpack -G DEB` in the build directory, after the target package_files. ./dev package does both.

# Manual pages, completions and the settings file, which the program describes itself, a list of what it consists of, and licences. Needs
# Node.js.
function(divan_package_files)
  set(files ${CMAKE_BINARY_DIR}/package)
  set(divan $<TARGET_FILE:divan>)
  add_custom_command(
    OUTPUT ${files}/complete
    COMMAND ${CMAKE_COMMAND} -E rm -rf package
    COMMAND ${CMAKE_COMMAND} -E make_directory package/man1 package/man5
    COMMAND ${divan} generate man package/man1
    COMMAND ${CMAKE_COMMAND} -E rename package/man1/divan.ini.5 package/man5/divan.ini.5
    COMMAND sh -c "gzip -9n package/man1/* package/man5/*"
    COMMAND ${divan} generate settings > package/divan.ini
    COMMAND ${divan} generate completion bash > package/divan.bash
    COMMAND ${divan} generate completion zsh > package/_divan
    COMMAND ${divan} generate completion fish > package/divan.fish
    COMMAND node ${CMAKE_SOURCE_DIR}/deploy/sbom.mjs ${PROJECT_VERSION} ${CMAKE_BINARY_DIR}
    COMMAND gzip -9n package/third-party-licenses.txt
    COMMAND ${CMAKE_COMMAND} -E touch package/complete
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    DEPENDS divan divan-js deploy/sbom.mjs
    COMMENT "Writing manual pages, completions and settings"
    VERBATIM)
  add_custom_target(package_files DEPENDS ${files}/complete)
  # The documentation is made of so many files that it is always written.
  set(documentation ${CMAKE_BINARY_DIR}/package-documentation)
  add_custom_target(
    package_documentation
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${documentation}
    COMMAND node ${CMAKE_SOURCE_DIR}/deploy/documentation.mjs ${documentation}
    COMMENT "Writing the documentation"
    VERBATIM)
  add_dependencies(package_files package_documentation)

  set(to_server COMPONENT server EXCLUDE_FROM_ALL)
  install(DIRECTORY ${files}/man1 ${files}/man5 DESTINATION share/man ${to_server})
  install(FILES ${files}/divan.ini DESTINATION /etc/divan ${to_server})
  install(FILES ${files}/divan.bash DESTINATION share/bash-completion/completions RENAME divan ${to_server})
  install(FILES ${files}/_divan DESTINATION share/zsh/vendor-completions ${to_server})
  install(FILES ${files}/divan.fish DESTINATION share/fish/vendor_completions.d ${to_server})
  install(FILES deploy/systemd/divan.service deploy/systemd/divan-backup.service deploy/systemd/divan-backup.timer DESTINATION lib/systemd/system ${to_server})
  install(FILES deploy/debian/divan.sysusers DESTINATION lib/sysusers.d RENAME divan.conf ${to_server})
  install(FILES deploy/debian/divan.tmpfiles DESTINATION lib/tmpfiles.d RENAME divan.conf ${to_server})
  install(FILES deploy/debian/copyright ${files}/sbom.cdx.json ${files}/third-party-licenses.txt.gz DESTINATION share/doc/divan ${to_server})
  install(DIRECTORY ${documentation}/ DESTINATION share/doc/divan ${to_server})
endfunction()

function(divan_package)
  divan_package_files()
  set(scripts ${CMAKE_BINARY_DIR}/package-scripts)
  foreach(script preinst postinst prerm postrm)
    configure_file(deploy/debian/${script} ${scripts}/${script} @ONLY)
  endforeach()
  file(WRITE ${scripts}/conffiles "/etc/divan/divan.ini\n")

  set(CPACK_PACKAGE_NAME divan)
  set(CPACK_PACKAGE_VENDOR Divan)
  set(CPACK_PACKAGE_CONTACT "The Divan developers <developers@divan.invalid>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "document database with a job queue, feeds and indexes that build themselves")
  set(CPACK_PACKAGE_DESCRIPTION "Divan speaks the HTTP API of CouchDB, so that its clients work unchanged. Background work is part of the database: a durable, transactional job queue, a feed of what changed in every database, and indexes that build themselves.")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_COMPONENTS_ALL server)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_SERVER_PACKAGE_NAME divan)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION database)
  set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles, init-system-helpers, tzdata")
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${scripts}/preinst ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm ${scripts}/conffiles)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  include(CPack)
endfunction()
