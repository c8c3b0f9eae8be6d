// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sentinels.
var (
	// ErrFrame: the other side wrote something that is no frame.
	ErrFrame = errors.New("not a frame of the worker protocol")
	// ErrDied: the worker ended before its job did.
	ErrDied = errors.New("the worker process died")
	// ErrDeep: the worker's stack is full, as of a template or value that calls or holds
	// itself.
	ErrDeep = errors.New("the worker was ended: it recurses too deep")
	// ErrMemory: the worker was killed for its memory.
	ErrMemory = errors.New("the worker was ended: more memory than a job may have")
	// ErrCPU: the worker used more processor time than a job may have.
	ErrCPU = errors.New("the worker was ended: more processor time than a job may have")
	// ErrDeadline: the worker was killed at the job's deadline.
	ErrDeadline = errors.New("the worker was ended: longer than a job may take")
)

// exitCPU is the exit code of a worker that passed its processor time.
const exitCPU = 64

// died says how a worker ended. said is the first line of its stderr, which is that of
// Go's runtime: there is no other way to learn of a stack that is full.
func died(state error, said string) error {
	if strings.Contains(said, "stack exceeds") || strings.Contains(said, "stack overflow") {
		return ErrDeep
	}
	if len(said) > maxReasonBytes {
		said = said[:maxReasonBytes]
	}
	if said == "" {
		return fmt.Errorf("%w (%w)", ErrDied, state)
	}
	return fmt.Errorf("%w (%w, %q)", ErrDied, state, said)
}

func passed(limit error, of any) error {
	if d, ok := of.(time.Duration); ok {
		return fmt.Errorf("%w (%s)", limit, d)
	}
	if n, ok := of.(int64); ok {
		return fmt.Errorf("%w (%d MiB)", limit, n>>20)
	}
	return limit
}
