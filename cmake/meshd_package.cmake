# What `cmake --install` puts where, and the .deb that ./dev package lets CPack make of it. The packages that it depends on are those of
# docker/packages.txt that the binary runs with; the rest of the package is in docker/debian.
include(GNUInstallDirs)
install(TARGETS meshd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${MESHD_MANUAL}/meshd.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${MESHD_MANUAL}/meshd.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME meshd)
install(FILES ${MESHD_MANUAL}/meshd.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _meshd)
install(FILES ${MESHD_MANUAL}/meshd.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# The rest is in the package alone: `cmake --install` leaves it out unless it is asked for the component `service`.
set(debian ${CMAKE_SOURCE_DIR}/docker/debian)
find_program(gzip gzip REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/changelog.gz DEPENDS ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  COMMAND ${gzip} -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG.md > ${CMAKE_BINARY_DIR}/changelog.gz VERBATIM)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/meshd.spdx.json
  DEPENDS ${CMAKE_SOURCE_DIR}/docker/sbom.py ${CMAKE_SOURCE_DIR}/docker/packages.txt
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/docker/sbom.py --version ${PROJECT_VERSION} --output ${CMAKE_BINARY_DIR}/meshd.spdx.json VERBATIM)
add_custom_target(meshd_package_files DEPENDS ${CMAKE_BINARY_DIR}/changelog.gz ${CMAKE_BINARY_DIR}/meshd.spdx.json)
add_dependencies(meshd_package_files meshd_manual)
install(FILES ${debian}/meshd.service DESTINATION lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${debian}/meshd.default DESTINATION /etc/default RENAME meshd COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_BINARY_DIR}/changelog.gz ${CMAKE_BINARY_DIR}/meshd.spdx.json ${debian}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT service EXCLUDE_FROM_ALL)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docker/prometheus ${CMAKE_SOURCE_DIR}/docker/grafana DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  COMPONENT service EXCLUDE_FROM_ALL)

# The names of docker/packages.txt with this use, as a Depends line.
function(meshd_packages_for use out)
  file(STRINGS ${CMAKE_SOURCE_DIR}/docker/packages.txt packages REGEX "^[^#].* ${use}( |$)")
  list(TRANSFORM packages REPLACE " .*" "")
  set(${out} ${packages} PARENT_SCOPE)
endfunction()
meshd_packages_for(run run_packages)
meshd_packages_for(service service_packages)
list(JOIN run_packages ", " run_packages)
list(JOIN service_packages ", " service_packages)

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the tests need not be built for the package
set(CPACK_GENERATOR DEB)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};meshd;ALL;/;${CMAKE_BINARY_DIR};meshd;service;/")
set(CPACK_PACKAGE_CONTACT "The meshd authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sharded arrays and sharded array programs over HTTP")
set(CPACK_PACKAGE_DESCRIPTION "meshd keeps sharded arrays and runs sharded array programs for anyone who can speak HTTP: JAX's model (meshes,
partition specs, donation, ordered effects) for curl and every language.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "${run_packages}, ${service_packages}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/postinst ${debian}/prerm ${debian}/postrm ${debian}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
