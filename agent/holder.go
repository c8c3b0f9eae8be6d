// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// holder names this process in the Lease. A pod's containers run one after the
// other, so that its name is enough. Outside of pods the process is named, and gone
// tells of others of the same machine whether they have ended.
func holder(pod string) (name string, gone func(string) bool) {
	if pod != "" {
		return pod, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // then nobody is known to be gone
	}
	prefix := host + "/"
	gone = func(other string) bool {
		text, ours := strings.CutPrefix(other, prefix)
		pid, perr := strconv.Atoi(text)
		return err == nil && ours && perr == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	return fmt.Sprintf("%s%d", prefix, os.Getpid()), gone
}
