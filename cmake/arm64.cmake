# Toolchain file: compiles for arm64 on a Debian of another processor, with its packages for arm64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# Runs the programs that the build itself runs.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
