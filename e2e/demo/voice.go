// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// voice prints the story: numbered headings, and lines below them that begin with
// the seconds since the heading. Safe for concurrent use.
type voice struct {
	out   io.Writer
	began time.Time

	// mu guards what follows.
	mu      sync.Mutex
	number  int
	heading time.Time
}

func newVoice(out io.Writer) *voice {
	return &voice{out: out, began: time.Now()}
}

// step begins the next part.
func (v *voice) step(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.number++
	v.heading = time.Now()
	fmt.Fprintf(v.out, "\n%d. %s\n", v.number, fmt.Sprintf(format, args...))
}

// line says what has just happened.
func (v *voice) line(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(v.out, "  %6.2f s  %s\n", time.Since(v.heading).Seconds(), fmt.Sprintf(format, args...))
}

// plain prints text as it is, set in, for what a program answered.
func (v *voice) plain(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for line := range strings.Lines(text) {
		fmt.Fprintln(v.out, strings.TrimRight("            "+line, " \n"))
	}
}

// elapsed since the story began.
func (v *voice) elapsed() time.Duration { return time.Since(v.began) }
