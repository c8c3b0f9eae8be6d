// SPDX-License-Identifier: Apache-2.0

package git

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
	ClassNotFound    Class = "RefNotFound" // no such ref or commit
	ClassTooLarge    Class = "TooLarge"    // a limit of limits.go
	ClassInvalid     Class = "Invalid"     // a URL, a Secret or a repository that cannot be used
	ClassTimeout     Class = "Timeout"     // no answer in time
)

// Error is what every function of this package returns. Its text has no
// credentials in it.
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

func failf(class Class, format string, args ...any) error {
	return &Error{Class: class, Err: fmt.Errorf(format, args...)}
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

// clean makes text of a server fit for a status: one line, short, no credentials.
func clean(text string) string {
	text = userinfo.ReplaceAllString(text, "$1")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }), " ")
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, 24*time.Hour)
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return min(at.Sub(now), 24*time.Hour)
	}
	return 0
}
