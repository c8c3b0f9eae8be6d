// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

const (
	// watchMin to watchMax: a watch is begun anew after it.
	watchMin = 30 * time.Minute
	watchMax = 60 * time.Minute
	// retryMin to retryMax: pause after a watch that failed.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// maxEvents is how many bytes of one watch are read.
	maxEvents = 16 << 20

	// acceptMeta leaves the token itself out.
	acceptMeta = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// Watcher tells when there may be another join token. It watches the one Secret, so
// that it costs no call while nothing happens.
type Watcher struct {
	rest    rest.Interface
	path    string
	changed chan struct{}
	seen    string // resource version that was told of
}

// NewWatcher for the join token in a namespace. It calls nothing.
func NewWatcher(config *rest.Config, namespace string) (*Watcher, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	config.Timeout = 0 // a watch lasts
	r, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the join token: %w", err)
	}
	return &Watcher{rest: r, path: "/api/v1/namespaces/" + namespace + "/secrets", changed: make(chan struct{}, 1)}, nil
}

// Changed has a value when the Secret was made or changed since the last one was
// taken, and once at the start.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Run watches until ctx ends. What fails is tried again.
func (w *Watcher) Run(ctx context.Context) error {
	pause, said := retryMin, ""
	for {
		began := time.Now()
		err := w.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || time.Since(began) > retryMax {
			pause, said = retryMin, ""
		}
		if err != nil && said != err.Error() {
			said = err.Error()
			logr.FromContextOrDiscard(ctx).Info("the join token cannot be watched; trying again", "cause", said)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause)) // spreads load
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if err != nil {
			pause = min(2*pause, retryMax)
		}
	}
}

// watch reads one watch to its end. It begins with what is there.
func (w *Watcher) watch(ctx context.Context) (err error) {
	lasts := watchMin + rand.N(watchMax-watchMin) // spreads load
	body, err := w.rest.Get().AbsPath(w.path).SetHeader("Accept", acceptMeta).
		Param("watch", "1").Param("fieldSelector", "metadata.name="+joinName).
		Param("timeoutSeconds", strconv.Itoa(int(lasts/time.Second))).Stream(ctx)
	if err != nil {
		return fmt.Errorf("watch Secret %s: %w", joinName, err)
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	events := json.NewDecoder(io.LimitReader(body, maxEvents))
	for {
		var event struct {
			Type   string `json:"type"`
			Object struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
				Message  string            `json:"message"`
			} `json:"object"`
		}
		if err := events.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("watch Secret %s: %w", joinName, err)
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			if version := event.Object.Metadata.ResourceVersion; version != w.seen {
				w.seen = version
				w.tell()
			}
		case "ERROR":
			return fmt.Errorf("watch Secret %s: %w: %s", joinName, errWatch, event.Object.Message)
		}
	}
}

var errWatch = errors.New("the API server ends it")

func (w *Watcher) tell() {
	select {
	case w.changed <- struct{}{}:
	default: // told already
	}
}
