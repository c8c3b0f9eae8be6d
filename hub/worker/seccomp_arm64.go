// SPDX-License-Identifier: Apache-2.0

package worker

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	// otherABI: there is none, so a number that no call has.
	otherABI = 0xffffffff
)

// This architecture has only the newer forms of calls.
var (
	deniedHere      = []uint32{unix.SYS_KEXEC_FILE_LOAD}
	deniedFilesHere = []uint32{}
)
