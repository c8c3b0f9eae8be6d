// SPDX-License-Identifier: Apache-2.0

package worker

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// otherABI: from here on the numbers are those of x32.
	otherABI = 0x40000000
)

// Older forms of calls, which this architecture has besides the newer ones.
var (
	deniedHere      = []uint32{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_KEXEC_FILE_LOAD}
	deniedFilesHere = []uint32{
		unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_MKDIR, unix.SYS_RMDIR,
		unix.SYS_MKNOD, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_READLINK, unix.SYS_INOTIFY_INIT,
	}
)
