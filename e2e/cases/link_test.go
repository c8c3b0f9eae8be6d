// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// echo answers each connection with what it says.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // the other end has closed
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// says sends a word through a connection and gives what comes back.
func says(c net.Conn, word string) (string, error) {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	got := make([]byte, len(word))
	_, err := io.ReadFull(c, got)
	return string(got), err
}

func TestALinkThatIsCutEndsItsConnectionsAndTakesNoNewOnesUntilItIsWhole(t *testing.T) {
	t.Parallel()
	l, err := newLink(t.Context(), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // it may be closed already
		return c
	}
	before := dial()
	if got, err := says(before, "one"); err != nil || got != "one" || !l.carries() {
		t.Fatalf("through the link comes %q, %v", got, err)
	}
	l.set(true)
	if got, err := says(before, "two"); err == nil {
		t.Errorf("through a link that is cut comes %q", got)
	}
	if got, err := says(dial(), "three"); err == nil {
		t.Errorf("a connection that is made while the link is cut gives %q", got)
	}
	if tried := l.set(false); tried != 1 {
		t.Errorf("%d connections were tried, want 1", tried)
	}
	if got, err := says(dial(), "four"); err != nil || got != "four" {
		t.Errorf("through a link that is whole again comes %q, %v", got, err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if err := l.close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestAnEventThatCutsLinksMeansTheClustersThatItNames(t *testing.T) {
	t.Parallel()
	p := &Player{}
	for _, name := range []string{"edge", "b-1", "b-2"} {
		p.targets = append(p.targets, &target{cluster: name})
	}
	for what, want := range map[string]struct {
		clusters string
		cut      bool
		d        time.Duration
	}{
		"the link between hub and agent is cut":                          {"edge, b-1, b-2", true, 0},
		"the connection to the hub is lost for two minutes":              {"edge, b-1, b-2", true, 2 * time.Minute},
		"b-1's link is cut for 30 seconds":                               {"b-1", true, 30 * time.Second},
		"the links of clusters b-1 and b-2 are interrupted for 1 minute": {"b-1, b-2", true, time.Minute},
		"the link is back":           {"edge, b-1, b-2", false, 0},
		"the link of b-2 is whole":   {"b-2", false, 0},
		"the network of b-1 is back": {"b-1", false, 0},
	} {
		found := false
		for _, h := range happenings() {
			m := h.words.FindStringSubmatch(what)
			if m == nil {
				continue
			}
			found = true
			if got := clustersOf(p.linksOf(m[0])); got != want.clusters {
				t.Errorf("%s: means %s, want %s", what, got, want.clusters)
			}
			if (len(m) == 3) != want.cut {
				t.Fatalf("%s: taken for %s", what, h.words)
			}
			if want.cut {
				if d, _ := asked(m[1], m[2]); d != want.d {
					t.Errorf("%s: for %s, want %s", what, d, want.d)
				}
			}
			break
		}
		if !found {
			t.Errorf("%s: nobody knows these words", what)
		}
	}
}

// TestAnAgentThatIsCutOffCatchesUpWhenTheLinkIsWhole plays what the player does at a link
// that is cut, on a real hub and agent.
func TestAnAgentThatIsCutOffCatchesUpWhenTheLinkIsWhole(t *testing.T) {
	t.Parallel()
	c, err := Parse("link.yaml", []byte(`# id: XX-07
---
step: v1
do: render
---
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {v: "1"}
---
step: cut
do: event
what: the link between the hub and the agent is cut
---
step: v2
do: render
---
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {v: "2"}
---
step: whole
do: event
what: the link is back
`))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	p := NewPlayer(shared, c, Options{Out: &out})
	t.Cleanup(func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := p.End(end); err != nil {
			t.Error(err)
		}
	})
	if err := p.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, s := range c.Steps {
		if err := p.Step(ctx, s); err != nil {
			t.Fatalf("step %s: %v", s.Name, err)
		}
		app, err := p.edge.Kubectl(ctx, "-n", c.Namespace(), "get", "configmap", "app", "-o", "jsonpath={.data.v}")
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, app)
	}
	if diff := cmp.Diff([]string{"1", "1", "1", "2"}, seen); diff != "" {
		t.Errorf("after each step (-want +got):\n%s\n%s", diff, out.String())
	}
	for _, words := range []string{"the link to it is cut, and nothing has changed", "the link was made whole; connections that were tried meanwhile: edge"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("not said: %s\n%s", words, out.String())
		}
	}
}
