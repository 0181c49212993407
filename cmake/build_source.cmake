# Writes OUTPUT from TEMPLATE with VERSION and the commit that SOURCE is at, if that differs from what is there. Of the commit alone, no time
# and no host: the same sources give the same file. Twelve digits, because how many git shortens a name to depends on the clone.
set(commit "")
find_program(git git)
# Only a repository of its own: the sources may have been unpacked into somebody's.
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --quiet --verify HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(SUBSTRING "${commit}" 0 12 commit)
  # `git describe --dirty` would lock the index, and fail a commit that is made meanwhile.
  execute_process(COMMAND ${git} --no-optional-locks -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(commit AND changes)
    string(APPEND commit -dirty)
  endif()
elseif(DEFINED ENV{BUILD_COMMIT})  # of an image, whose builder has the sources alone
  string(SUBSTRING "$ENV{BUILD_COMMIT}" 0 12 commit)
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
