// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
)

// Object is what a request was about.
type Object struct {
	Group, Version, Resource, Subresource, Namespace, Name string
}

// Event is one entry of an audit log: who did what to which object with which
// answer. Bodies are not recorded.
type Event struct {
	ID        string
	Stage     string
	User      string
	Groups    []string
	Verb      string
	URI       string
	Object    Object
	UserAgent string
	Code      int
	Message   string
	// Received is when the request came, Answered when this stage was reached.
	Received, Answered time.Time
}

// String gives the event on one line, for the message of a failed test.
func (e Event) String() string {
	return fmt.Sprintf("%s %s %s %d by %s (%s)", e.Received.UTC().Format("15:04:05.000"), e.Verb, e.URI, e.Code, e.User, e.UserAgent)
}

// ServiceAccount splits the user of a ServiceAccount into namespace and name.
func (e Event) ServiceAccount() (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(e.User, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// Masters says whether the user was in system:masters.
func (e Event) Masters() bool { return slices.Contains(e.Groups, "system:masters") }

// record is the part of an entry that is read.
type record struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
}

// Filter says whether an event is wanted.
type Filter func(Event) bool

// Audit reads an audit log from its beginning to what is its end now, giving
// the events that pass all filters. A log that is still written may end with
// half a line, which is left out. An error ends the sequence.
func Audit(path string, filters ...Filter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Event{}, fmt.Errorf("read audit log: %w", err))
			return
		}
		defer func() {
			// Only read from: there is nothing that closing could lose.
			_ = f.Close()
		}()
		r := bufio.NewReaderSize(f, 64<<10)
		for n := 1; ; n++ {
			line, err := readLine(r)
			if err == io.EOF { //nolint:errorlint // readLine gives it as it is
				return
			}
			var rec record
			if err == nil {
				err = json.Unmarshal(line, &rec)
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("read audit log: line %d: %w", n, err))
				return
			}
			ev := rec.event()
			if passes(ev, filters) && !yield(ev, nil) {
				return
			}
		}
	}
}

// readLine reads one whole line; io.EOF comes for none and for half a line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case err != bufio.ErrBufferFull: //nolint:errorlint // bufio gives it as it is
			return nil, err
		case len(line) > maxAuditLine:
			return nil, fmt.Errorf("longer than %d bytes", maxAuditLine)
		}
	}
}

func (r record) event() Event {
	return Event{
		ID: r.AuditID, Stage: r.Stage, User: r.User.Username, Groups: r.User.Groups,
		Verb: r.Verb, URI: r.RequestURI, UserAgent: r.UserAgent,
		Code: r.ResponseStatus.Code, Message: r.ResponseStatus.Message,
		Received: r.Received, Answered: r.Answered,
		Object: Object{
			Group: r.ObjectRef.APIGroup, Version: r.ObjectRef.APIVersion, Resource: r.ObjectRef.Resource,
			Subresource: r.ObjectRef.Subresource, Namespace: r.ObjectRef.Namespace, Name: r.ObjectRef.Name,
		},
	}
}

func passes(e Event, filters []Filter) bool {
	for _, f := range filters {
		if !f(e) {
			return false
		}
	}
	return true
}

// AuditAll collects what Audit gives.
func AuditAll(path string, filters ...Filter) ([]Event, error) {
	var all []Event
	for ev, err := range Audit(path, filters...) {
		if err != nil {
			return nil, err
		}
		all = append(all, ev)
	}
	return all, nil
}

// ByUser wants the events of these users.
func ByUser(users ...string) Filter {
	return func(e Event) bool { return slices.Contains(users, e.User) }
}

// ByServiceAccountsOf wants the events of ServiceAccounts of these namespaces.
func ByServiceAccountsOf(namespaces ...string) Filter {
	return func(e Event) bool {
		ns, _, ok := e.ServiceAccount()
		return ok && slices.Contains(namespaces, ns)
	}
}

// ByAgent wants the events whose user agent begins with prefix.
func ByAgent(prefix string) Filter {
	return func(e Event) bool { return strings.HasPrefix(e.UserAgent, prefix) }
}

// WithVerb wants the events with one of these verbs, as get or patch.
func WithVerb(verbs ...string) Filter {
	return func(e Event) bool { return slices.Contains(verbs, e.Verb) }
}

// WithCode wants the events with one of these status codes.
func WithCode(codes ...int) Filter {
	return func(e Event) bool { return slices.Contains(codes, e.Code) }
}

// AboutResource wants the events about a resource, in plural, of a group.
func AboutResource(group, plural string) Filter {
	return func(e Event) bool { return e.Object.Group == group && e.Object.Resource == plural }
}

// Since wants the events received at t or later.
func Since(t time.Time) Filter {
	return func(e Event) bool { return !e.Received.Before(t) }
}

// Finished wants the events of requests that were answered to the end; a
// watch that goes on has none yet.
func Finished() Filter { return func(e Event) bool { return e.Stage == "ResponseComplete" } }

// NotHarness leaves out the requests of the harness itself and of kwok.
func NotHarness() Filter {
	return func(e Event) bool {
		return e.User != BootstrapUser && e.User != KwokUser && e.UserAgent != UserAgent && e.UserAgent != BootstrapAgent
	}
}

// AnyOf wants the events that one of the filters wants.
func AnyOf(filters ...Filter) Filter {
	return func(e Event) bool {
		return slices.ContainsFunc(filters, func(f Filter) bool { return f(e) })
	}
}

// Not turns a filter round.
func Not(f Filter) Filter { return func(e Event) bool { return !f(e) } }

// Masters wants the events by members of system:masters.
func Masters() Filter { return Event.Masters }
