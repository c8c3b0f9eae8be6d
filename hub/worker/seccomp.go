// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that no worker makes: other programs, other processes, the kernel's
// larger levers, and io_uring, which would do what the filter forbids.
var deniedAlways = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_KCMP,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SETHOSTNAME,
}

// Sockets and files, which only a fetch worker has. What is open stays usable:
// stdin, stdout, stderr.
var deniedFiles = []uint32{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG,
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT,
	unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_TRUNCATE, unix.SYS_UTIMENSAT,
	unix.SYS_READLINKAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT,
	unix.SYS_MQ_OPEN, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MEMFD_CREATE,
}

// Offsets in the kernel's struct seccomp_data (little endian).
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetFirstArg = 16
)

// install sets the filter for all threads of the process.
func install(barrier Barrier) error {
	program := filter(barrier, uint32(os.Getpid()))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// TSYNC: the runtime has threads already; all get the filter, or none.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("seccomp filter: %w", errno)
	}
	return nil
}

// filter builds the program. Denied calls answer EPERM, so that an attempt is an
// error in the worker and not its end.
func filter(barrier Barrier, self uint32) []unix.SockFilter {
	stmt := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	jump := func(code uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no}
	}
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		set   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
	)
	deny := stmt(ret, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))
	allow := stmt(ret, unix.SECCOMP_RET_ALLOW)
	program := []unix.SockFilter{
		stmt(load, offsetArch),
		jump(equal, auditArch, 1, 0),
		stmt(ret, unix.SECCOMP_RET_KILL_PROCESS), // numbers of another architecture
		stmt(load, offsetNumber),
		jump(least, otherABI, 0, 1),
		stmt(ret, unix.SECCOMP_RET_KILL_PROCESS),
		// clone3 hides its flags in memory; callers go back to clone.
		jump(equal, unix.SYS_CLONE3, 0, 1),
		stmt(ret, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
		// clone makes threads, never processes.
		jump(equal, unix.SYS_CLONE, 0, 4),
		stmt(load, offsetFirstArg),
		jump(set, unix.CLONE_THREAD, 0, 1),
		allow,
		deny,
		// The runtime signals its own threads, nobody else's.
		jump(equal, unix.SYS_TGKILL, 0, 4),
		stmt(load, offsetFirstArg),
		jump(equal, self, 0, 1),
		allow,
		deny,
	}
	denied := append(append([]uint32{}, deniedAlways...), deniedHere...)
	if barrier == BarrierAll {
		denied = append(append(denied, deniedFiles...), deniedFilesHere...)
	}
	for _, number := range denied {
		program = append(program, jump(equal, number, 0, 1), deny)
	}
	return append(program, allow)
}
