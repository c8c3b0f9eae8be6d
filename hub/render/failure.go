// SPDX-License-Identifier: Apache-2.0

package render

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kumodo.io/convoy/hub/worker"
)

// failures remembers renders that failed for what they are made of, so that a chart
// without an end does not take a worker each time that its Release is looked at. They
// are tried again after failureTime, when anything of the job is another, and when a
// render is asked for though one is known.
type failures struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	order *list.List // of *failure, the oldest last
}

type failure struct {
	key [sha256.Size]byte
	err error
	at  time.Time
}

func newFailures(c clock.PassiveClock) *failures {
	return &failures{clock: c, byKey: map[[sha256.Size]byte]*list.Element{}, order: list.New()}
}

// failureKey is over all of a job: what a render read before it failed is not always
// known, and what only makes one fail or succeed is in no inputs hash.
func failureKey(job *Job, static string) (key [sha256.Size]byte, ok bool) {
	text, err := json.Marshal(job.Content)
	if err != nil {
		return key, false // then it is not remembered
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %t %t\n", job.Tenant, static, job.Images != nil, job.Charts != nil)
	sum.Write(text)
	sum.Sum(key[:0])
	return key, true
}

// find gives the failure of a job, nil if none is known.
func (f *failures) find(key [sha256.Size]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	element := f.byKey[key]
	if element == nil {
		return nil
	}
	known := valueOf(element)
	if f.clock.Since(known.at) >= failureTime {
		f.dropLocked(element)
		return nil
	}
	return known.err
}

// keep remembers one that came of the inputs, and forgets what is no more so.
func (f *failures) keep(key [sha256.Size]byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if element := f.byKey[key]; element != nil {
		f.dropLocked(element)
	}
	if !ofInputs(err) {
		return
	}
	f.byKey[key] = f.order.PushFront(&failure{key: key, err: err, at: f.clock.Now()})
	for f.order.Len() > maxFailures {
		f.dropLocked(f.order.Back())
	}
}

func (f *failures) dropLocked(element *list.Element) {
	f.order.Remove(element)
	delete(f.byKey, valueOf(element).key)
}

func valueOf(element *list.Element) *failure {
	known, ok := element.Value.(*failure)
	if !ok {
		return &failure{} // nobody puts in anything else
	}
	return known
}

// ofInputs reports errors that the same job would end with again. How long a render
// took by the clock says of a busy machine as much as of the render.
func ofInputs(err error) bool {
	var own *Error
	if errors.As(err, &own) && own.ofInputs {
		return true
	}
	return errors.Is(err, worker.ErrCPU) || errors.Is(err, worker.ErrMemory) || errors.Is(err, worker.ErrDeep) || errors.Is(err, errStream)
}
