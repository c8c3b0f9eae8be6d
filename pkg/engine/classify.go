// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// class says what an error of an apply means for its render.
type class uint8

const (
	// rejected: the server will not have the object as it is.
	rejected class = iota + 1
	// cannotTell: the server could not judge it now.
	cannotTell
	// deferred: something that it needs is in the same render.
	deferred
	// raced: the object is not what it was when we looked.
	raced
	// conflicting: fields are managed by others.
	conflicting
	// noNamespace: the namespace that the order names does not exist yet.
	noNamespace
	// invalid: rejected, maybe only because a field cannot be changed.
	invalid
)

// String names the class.
func (c class) String() string {
	switch c {
	case rejected, invalid:
		return "rejected"
	case cannotTell:
		return "cannot tell"
	case deferred:
		return "deferred"
	case raced:
		return "raced"
	case conflicting:
		return "conflicting"
	case noNamespace:
		return "no namespace"
	}
	return "none"
}

// surroundings is what of the same render bears on an error.
type surroundings struct {
	bringsKind      bool // its CustomResourceDefinition is in the render and will change
	bringsNamespace bool // its Namespace is in the render
	bringsWebhook   bool // an admission webhook or policy is in the render
	madeNamespace   bool // its namespace is the order's, which the engine makes
	dry             bool
}

// The server has no other sign for these than the text of its message. They
// only ever turn a final verdict into "cannot tell" or back, or forbid a deletion.
const (
	textNoDryRun   = "does not support dry run"
	textDenied     = "denied the request"
	textPolicy     = "denied request"
	textUndeclared = "field not declared in schema"
	textQuota      = "exceeded quota"
)

// lasting are the words of an internal error (500) by which the server says that it will
// never have an object: it could not even read it.
var lasting = []string{
	"failed to create typed patch object", // a field that the schema lacks or has as another type, a doubled key of a list
	textUndeclared,                        // the same, of what it was merged with
	"error decoding from json",            // a value of another type than its field, or no base64
}

func saysLasting(message string) bool {
	return slices.ContainsFunc(lasting, func(words string) bool { return strings.Contains(message, words) })
}

// classify sorts the error of an apply or a dry run.
func classify(err error, s surroundings) class {
	if errors.Is(err, errUnknownKind) {
		if s.bringsKind {
			return deferred
		}
		return rejected
	}
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return cannotTell // no answer: connection, deadline
	}
	st := api.Status()
	switch {
	case st.Code == http.StatusNotFound:
		return classifyNotFound(st, s)
	case st.Code == http.StatusConflict:
		if len(conflictsOf(err)) > 0 {
			return conflicting
		}
		return raced
	case st.Code == http.StatusTooManyRequests:
		return cannotTell
	case st.Code >= http.StatusInternalServerError:
		if saysLasting(st.Message) {
			return decided(s)
		}
		return cannotTell
	case s.bringsWebhook && denied(st.Message):
		return deferred
	case st.Code == http.StatusUnprocessableEntity:
		for _, cause := range causes(st) {
			if cause.Field == createOnlyField {
				return raced
			}
		}
		if s.bringsKind {
			return deferred
		}
		return invalid
	case st.Code == http.StatusForbidden && hasCause(st, causeTerminating):
		return cannotTell // the namespace is on its way out, and may come back
	case st.Code == http.StatusBadRequest && s.dry && strings.Contains(st.Message, textNoDryRun):
		return cannotTell
	case st.Code == http.StatusUnauthorized, st.Code == http.StatusRequestTimeout:
		return cannotTell
	}
	return decided(s)
}

// causeTerminating is the cause that the namespace lifecycle check gives.
const causeTerminating = metav1.CauseType("NamespaceTerminating")

func denied(message string) bool {
	return strings.Contains(message, textDenied) || strings.Contains(message, textPolicy)
}

// unchangeable are the words with which the server says that a field of an existing
// object cannot be changed. All of its kinds of validation together have no other
// sign for it. An object is only ever replaced if one of them stands there, nothing
// denied the change, and the same content passes as a new object.
var unchangeable = []string{"immutable", "may not change once set", "updates to statefulset spec", "may not be changed"}

func saysUnchangeable(err error) bool {
	var api apierrors.APIStatus
	if !errors.As(err, &api) || denied(api.Status().Message) {
		return false
	}
	for _, words := range unchangeable {
		if strings.Contains(api.Status().Message, words) {
			return true
		}
	}
	return false
}

// onlyUnchangeable says whether nothing else is wrong with a change.
func onlyUnchangeable(err error) bool {
	var api apierrors.APIStatus
	if !saysUnchangeable(err) || !errors.As(err, &api) {
		return false
	}
	for _, c := range causes(api.Status()) {
		if !slices.ContainsFunc(unchangeable, func(words string) bool { return strings.Contains(c.Message, words) }) {
			return false
		}
	}
	return len(causes(api.Status())) > 0
}

func decided(s surroundings) class {
	if s.bringsKind {
		return deferred
	}
	return rejected
}

func classifyNotFound(st metav1.Status, s surroundings) class {
	if st.Details != nil && st.Details.Kind == "namespaces" {
		switch {
		case s.bringsNamespace:
			return deferred
		case s.madeNamespace:
			return noNamespace
		}
		return rejected
	}
	return decided(s)
}

func causes(st metav1.Status) []metav1.StatusCause {
	if st.Details == nil {
		return nil
	}
	return st.Details.Causes
}

func hasCause(st metav1.Status, t metav1.CauseType) bool {
	for _, c := range causes(st) {
		if c.Type == t {
			return true
		}
	}
	return false
}

// hidingError is an error about an object with values that were sealed.
type hidingError struct {
	err   error
	hides map[string]string // the values, by where they stand
}

func hiding(err error, hides map[string]string) error {
	if err == nil || len(hides) == 0 {
		return err
	}
	return &hidingError{err: err, hides: hides}
}

func (e *hidingError) Error() string { return e.err.Error() }
func (e *hidingError) Unwrap() error { return e.err }

// tells says whether the error repeats such a value. Then only fields are named, as of a
// Secret.
func (e *hidingError) tells() bool {
	said := e.err.Error()
	for _, value := range e.hides {
		if spelt := strconv.Quote(value); value != "" && (strings.Contains(said, value) || strings.Contains(said, spelt[1:len(spelt)-1])) {
			return true
		}
	}
	return false
}

// explain shortens an error for a message. Values of a Secret never get into it: of
// an invalid Secret only the fields are named.
func explain(err error, secret bool) string {
	var hidden *hidingError
	secret = secret || errors.As(err, &hidden) && hidden.tells()
	var state *StateError
	if errors.As(err, &state) {
		says := state.says()
		return says + clip(explain(state.Err, secret), maxMessage-len(says))
	}
	var held *heldError
	if errors.As(err, &held) {
		hint := held.hint()
		return clip(explain(held.cause, secret), maxMessage-len(hint)) + hint
	}
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		var silent *noAnswerError
		if errors.As(err, &silent) {
			err = silent // by what it was asked is of no use to anybody
		}
		return clip(err.Error(), maxMessage)
	}
	st := api.Status()
	if !secret && st.Code != http.StatusUnprocessableEntity {
		return clip(oneLine(plainWords(st.Message)), maxMessage)
	}
	var parts []string
	for _, c := range causes(st) {
		part := string(c.Type)
		if secret && slices.ContainsFunc(unchangeable, func(words string) bool { return strings.Contains(c.Message, words) }) {
			part = "field is immutable"
		}
		if !secret {
			part = clip(lastClause(c.Message), 160)
		}
		if c.Field != "" && c.Field != "<nil>" {
			part = c.Field + ": " + part
		}
		if len(parts) == maxFields {
			parts = append(parts, "and more")
			break
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		if secret {
			return string(st.Reason)
		}
		return clip(oneLine(plainWords(st.Message)), maxMessage)
	}
	return clip(strings.Join(parts, "; "), maxMessage)
}

// lastClause drops the dump of the whole value that the server puts between the
// kind of a fault and what is wrong, or in lines of its own after it.
func lastClause(message string) string {
	if first, dump, more := strings.Cut(message, "\n"); more {
		message = strings.TrimSpace(first)
		if strings.HasSuffix(message, "{") {
			// The dump begins in the first line. What is wrong stands before or after it.
			if i := strings.LastIndex(dump, "}: "); i >= 0 && !strings.Contains(dump[i:], "\n") {
				return dump[i+3:]
			}
			if i := strings.LastIndex(message, ": "); i >= 0 {
				message = message[:i]
			}
		}
	}
	if len(message) <= 160 {
		return message
	}
	if i := strings.LastIndex(message, ": "); i >= 0 && i+2 < len(message) {
		return message[i+2:]
	}
	return message
}
