// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"kumodo.io/convoy/hub/options"
)

func TestEveryLineOfTheLogIsJSONWhoeverWritesIt(t *testing.T) {
	var out bytes.Buffer
	log := logger(&out, true, 0)
	before := klog.Background()
	klog.SetLogger(log)
	ctrllog.SetLogger(log)
	t.Cleanup(func() { klog.SetLogger(before) })
	log.WithName("release").Info("rendered", "release", "team-a/shop")
	log.V(1).Info("for developers")
	klog.InfoS("a library speaks", "port", 10250)
	klog.Infof("a library speaks of %d", 1)
	klog.ErrorS(errors.New("broken"), "a library fails")
	ctrllog.Log.WithName("controller").Info("starting")
	klog.Flush()

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Errorf("%d lines, want 5: that for developers is not asked for\n%s", len(lines), out.String())
	}
	for _, line := range lines {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("not JSON: %s", line)
			continue
		}
		for _, key := range []string{"time", "level", "msg"} {
			if fields[key] == nil {
				t.Errorf("no %s in %s", key, line)
			}
		}
	}
}

func TestTheLogIsJSONUnlessTextIsAskedFor(t *testing.T) {
	for _, test := range []struct {
		args []string
		json bool
	}{{nil, true}, {[]string{"--log-format=text"}, false}} {
		given, err := options.Parse(append(test.args, "--standalone", "--data-dir=/d"), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		config, err := given.Complete().Config()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := logger(&out, config.LogJSON, config.Verbosity)
		log.Info("serves")
		if got := json.Valid(out.Bytes()); got != test.json {
			t.Errorf("%v: JSON is %v, want %v: %s", test.args, got, test.json, out.String())
		}
	}
}

func TestVersionIsSaidBeforeAnythingElse(t *testing.T) {
	if code := run([]string{"--version"}); code != 0 {
		t.Errorf("ended with %d", code)
	}
}
