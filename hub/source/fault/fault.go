// SPDX-License-Identifier: Apache-2.0

// Package fault names what can go wrong when a source is fetched: the first step
// of the flow source -> render -> store -> deliver -> apply -> observe -> report.
// All kinds of sources use the same classes, so that whoever decides about
// conditions and about when to try again sees one kind of error.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Class of an error, for whoever decides what to tell and when to try again.
type Class string

// Classes of errors.
const (
	ClassUnreachable Class = "Unreachable" // no answer, or none that makes sense
	ClassAuth        Class = "Auth"        // credentials missing, wrong or expired
	ClassCertificate Class = "Certificate" // the server's certificate is not trusted
	ClassHostKey     Class = "HostKey"     // the server's ssh key is not the known one
	ClassDenied      Class = "Denied"      // an address that sources may not have
	ClassRateLimited Class = "RateLimited" // the server asks to come back later
	ClassNotFound    Class = "RefNotFound" // no such ref, commit, tag, chart or version
	ClassTooLarge    Class = "TooLarge"    // a limit
	ClassInvalid     Class = "Invalid"     // a URL, a Secret or content that cannot be used
	ClassTimeout     Class = "Timeout"     // no answer in time
	ClassSignature   Class = "Signature"   // not signed, or not by one of the keys
)

const (
	// maxTextBytes of what a server says is repeated in an error.
	maxTextBytes = 200
	// maxRetryAfter is the longest that a server is left alone for.
	maxRetryAfter = time.Hour
)

// Error is what clients of sources return. Its text has no credentials in it.
type Error struct {
	Class Class
	// RetryAfter is when the server wants to be asked again at the earliest; 0 if it did not say.
	RetryAfter time.Duration
	// Err is what is wrong.
	Err error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Failf makes an Error.
func Failf(class Class, format string, args ...any) error {
	return &Error{Class: class, Err: fmt.Errorf(format, args...)}
}

// Wrap puts words before an error and keeps its class and its RetryAfter.
func Wrap(what string, err error) error {
	wrapped := &Error{Class: ClassOf(err), Err: fmt.Errorf("%s: %w", what, err)}
	var own *Error
	if errors.As(err, &own) {
		wrapped.RetryAfter = own.RetryAfter
	}
	return wrapped
}

// ClassOf gives the class of an error, ClassUnreachable for one of elsewhere.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ClassUnreachable
}

var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s]*@`)

// Clean makes text of a server fit for a status: one line, short, no credentials.
func Clean(text string) string {
	text = userinfo.ReplaceAllString(text, "$1")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }), " ")
	if len(text) > maxTextBytes {
		text = text[:maxTextBytes] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// RetryAfter reads the header of that name: seconds, or a date.
func RetryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return min(at.Sub(now), maxRetryAfter)
	}
	return 0
}
