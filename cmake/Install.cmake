# `cmake --install` and find_package(espalier).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY ESPALIER_LIBRARIES)
install(TARGETS espalier ${libraries} EXPORT espalier-targets)
install(EXPORT espalier-targets NAMESPACE espalier:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)
install(DIRECTORY src/espalier DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE)
configure_package_config_file(cmake/espalier-config.cmake.in ${PROJECT_BINARY_DIR}/espalier-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/espalier-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/espalier-config.cmake ${PROJECT_BINARY_DIR}/espalier-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/espalier)
if(TARGET espalier_program)
  install(TARGETS espalier_program)
endif()
