# What `cmake --install` puts where, and the .deb that `cpack -G DEB` makes of it. The packages that it depends on are those of
# docker/packages.txt that the binary runs with.
include(GNUInstallDirs)
install(TARGETS meshd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

file(STRINGS ${CMAKE_SOURCE_DIR}/docker/packages.txt run_packages REGEX "^[^#].* run( |$)")
list(TRANSFORM run_packages REPLACE " .*" "")
list(JOIN run_packages ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The meshd authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sharded arrays and sharded array programs over HTTP")
set(CPACK_PACKAGE_FILE_NAME meshd_${PROJECT_VERSION})
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
