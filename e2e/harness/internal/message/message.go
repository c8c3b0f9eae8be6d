// SPDX-License-Identifier: Apache-2.0

// Package message holds the JSON lines that the test harness and its
// supervisor process say to each other over the supervisor's standard input
// and output. It stands outside the flow: it is test machinery only.
package message

// MaxLine bounds one line in either direction, in bytes. The largest line is
// a start order with the environment and mounts of one pod.
const MaxLine = 1 << 20

// Op names what the harness orders.
type Op string

const (
	// OpStart starts a program.
	OpStart Op = "start"
	// OpSignal sends a signal to a program that was started here.
	OpSignal Op = "signal"
	// OpRemove names a folder to be removed when the supervisor ends.
	OpRemove Op = "remove"
	// OpDetach makes the supervisor stay after end of file; SIGTERM ends it.
	OpDetach Op = "detach"
)

// Request is one order to the supervisor. ID is repeated in the answer.
type Request struct {
	ID int64 `json:"id"`
	Op Op    `json:"op"`

	// Start is set for OpStart.
	Start *Start `json:"start,omitempty"`
	// PID and Signal are set for OpSignal.
	PID    int `json:"pid,omitempty"`
	Signal int `json:"signal,omitempty"`
	// Path is set for OpRemove.
	Path string `json:"path,omitempty"`
}

// Start says how to start one program.
type Start struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	// Log is the file that standard output and error are appended to.
	Log string `json:"log"`
	// Pod, when set, gives the program namespaces and a root of its own.
	Pod *Pod `json:"pod,omitempty"`
}

// Pod describes the container around a program: what an image and a kubelet
// would have given it.
type Pod struct {
	Hostname string `json:"hostname"`
	// Root is an empty folder that becomes the mount point of the new root.
	Root string `json:"root"`
	// WorkDir is the working directory inside the new root.
	WorkDir string `json:"workDir,omitempty"`
	// Path and Args are the program inside the new root.
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`

	Mounts []Mount `json:"mounts,omitempty"`
	// Network is the path of a network namespace, empty for the supervisor's own.
	Network string `json:"network,omitempty"`

	ReadOnlyRoot bool  `json:"readOnlyRoot,omitempty"`
	UID          int   `json:"uid,omitempty"`
	GID          int   `json:"gid,omitempty"`
	Groups       []int `json:"groups,omitempty"`
	// NoNewPrivileges and DropCapabilities follow the securityContext.
	NoNewPrivileges  bool `json:"noNewPrivileges,omitempty"`
	DropCapabilities bool `json:"dropCapabilities,omitempty"`
}

// Mount binds a file or folder of this machine into the root of a pod.
type Mount struct {
	From     string `json:"from"`
	To       string `json:"to"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Event is one line from the supervisor: the answer to a request, or, with
// Exit set, the end of a program.
type Event struct {
	ID    int64  `json:"id,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
	Exit  *Exit  `json:"exit,omitempty"`
}

// Exit says how a program ended.
type Exit struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Code is the exit code, -1 when a signal ended it.
	Code int `json:"code"`
	// Signal is the signal that ended it, 0 when none did.
	Signal int `json:"signal,omitempty"`
	// MaxRSS is the largest resident set, in KiB.
	MaxRSS int64 `json:"maxRSS"`
	// CPUMillis is user and system time together, in milliseconds.
	CPUMillis int64 `json:"cpuMillis"`
}
