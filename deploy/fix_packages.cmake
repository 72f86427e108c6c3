# Run by cpack when the packages are written. CPack 3.25 puts the building machine's paths into the md5sums of floe-dbgsym,
# which dpkg --verify cannot find, and which differ between builds. It counts a symbolic link as what it points to.
foreach(package ${CPACK_PACKAGE_FILES})
  if(package MATCHES "deb$")
    execute_process(COMMAND sh "${CMAKE_CURRENT_LIST_DIR}/fix_package.sh" "${package}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
