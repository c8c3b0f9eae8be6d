// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"os"
	"time"
)

// Busy names the workers that are not idle, for tests of which worker does what.
func (r *Renderer) Busy() string {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	var pids []int
	for _, m := range r.pool.busy {
		pids = append(pids, m.PID())
	}
	return fmt.Sprint(pids)
}

// KillIdle kills all idle workers, as the kernel would, and waits for their end.
func (r *Renderer) KillIdle() {
	r.pool.mu.Lock()
	idle := append([]*member{}, r.pool.idle...)
	r.pool.mu.Unlock()
	for _, m := range idle {
		process, err := os.FindProcess(m.PID())
		if err == nil {
			err = process.Kill()
		}
		if err == nil {
			<-m.Ended()
		}
	}
}

// EndSoon gives jobs less processor time, so that tests of those that never end do.
func EndSoon() { workerLimits.JobCPU = 5 * time.Second }
