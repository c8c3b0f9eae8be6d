// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// LiveView says what the hub asks about the objects of a Release
// (GET /v1/live/<uid>?view=<view>).
type LiveView string

// Views. LiveHealth is answered from what the agent has in memory, without a call to
// its API server. LiveDiff compares, with one dry run each, those objects that differ
// from what was applied, and answers of all others from memory too.
const (
	LiveHealth LiveView = "health"
	LiveDiff   LiveView = "diff"
)

// Valid says whether it is one of the views.
func (v LiveView) Valid() bool { return v == LiveHealth || v == LiveDiff }

// What an agent that was asked may answer instead.
var (
	// ErrNoRelease: the agent does not know the Release.
	ErrNoRelease = errors.New("the agent knows no such Release")
	// ErrNoLive: the agent is older than the question.
	ErrNoLive = errors.New("the agent is too old to be asked for live detail")
)

// Masked stands for every value that must not be shown.
const Masked = "***"

// LiveObject is how one object of a Release is on the cluster, now.
type LiveObject struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Wave      int32  `json:"wave,omitempty"`
	// State of its health: Healthy, Progressing, Degraded, Suspended, Terminating,
	// Unknown. Message says why, Since when that began, as far as it is known.
	State   string    `json:"state"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// InSync: True as it was applied, but for what is ignored; False, not; Unknown, it
	// was not seen yet, or could not be compared, which Reason and Problem say.
	InSync Truth `json:"inSync"`
	// Reason is that of an exception: Drifted, Contested, Unreachable, ... Empty: none.
	Reason  string `json:"reason,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Drift are the fields that differ, at most MaxLiveDifferences; MoreDrift counts
	// those that did not fit. Only of LiveDiff.
	Drift     []Difference `json:"drift,omitempty"`
	MoreDrift int32        `json:"moreDrift,omitempty"`
}

// Difference is one field. The values are JSON, cut to MaxLiveValue bytes; empty where
// there is none; Masked where it must not be shown.
type Difference struct {
	Path    string `json:"path"`
	Wanted  string `json:"wanted,omitempty"`
	Live    string `json:"live,omitempty"`
	Manager string `json:"manager,omitempty"` // who manages it on the cluster, if known
}

// LiveEnd closes an answer. One without it was cut off.
type LiveEnd struct {
	// Sequence of the order that the answer is about.
	Sequence int64 `json:"sequence"`
	// Objects that were sent, the worst first, and Left out since there was no room.
	Objects int32 `json:"objects"`
	Left    int32 `json:"left,omitempty"`
	// Uncompared is the number of objects that differ and were not looked at in detail.
	Uncompared int32     `json:"uncompared,omitempty"`
	At         time.Time `json:"at"`
}

// LiveLine is one line of an answer. One field is set.
type LiveLine struct {
	Object *LiveObject `json:"object,omitempty"`
	End    *LiveEnd    `json:"end,omitempty"`
}

// WriteLiveLine writes one line.
func WriteLiveLine(w io.Writer, line LiveLine) error {
	raw, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode live detail: %w", err)
	}
	if _, err := w.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("write live detail: %w", err)
	}
	return nil
}

// ReadLive reads an answer, which may be anything, and calls yield for each object. It
// fails when the answer has no end, or is longer than it may be.
func ReadLive(r io.Reader, yield func(LiveObject) error) (LiveEnd, error) {
	scanner := bufio.NewScanner(io.LimitReader(r, MaxLiveBody+MaxLiveEnd+1))
	scanner.Buffer(make([]byte, 0, 4<<10), MaxLiveBody)
	for scanner.Scan() {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var line LiveLine
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return LiveEnd{}, fmt.Errorf("decode live detail: %w", err)
		}
		switch {
		case line.End != nil:
			return *line.End, nil
		case line.Object != nil:
			if err := yield(*line.Object); err != nil {
				return LiveEnd{}, err
			}
		}
	}
	err := scanner.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return LiveEnd{}, fmt.Errorf("live detail: %w", ErrTooLong)
	case err != nil:
		return LiveEnd{}, fmt.Errorf("read live detail: %w", err)
	}
	return LiveEnd{}, fmt.Errorf("live detail: %w", io.ErrUnexpectedEOF)
}
