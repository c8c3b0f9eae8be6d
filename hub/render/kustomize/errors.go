// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels. Errors that wrap them name the file that has the fault.
var (
	// ErrNone: there is no kustomization in a folder.
	ErrNone = errors.New("there is no kustomization.yaml, kustomization.yml or Kustomization in it")
	// ErrSeveral: there are several.
	ErrSeveral = errors.New("has several kustomization files")
	// ErrRemote: a reference that is not to a file of the source.
	ErrRemote = errors.New("is not in the source: nothing is fetched for a kustomization")
	// ErrMissing: a reference to something that is not there.
	ErrMissing = errors.New("is not in the source")
	// ErrPlugin: a generator, transformer or validator that is a program.
	ErrPlugin = errors.New("is a plugin: only those that are built into kustomize run")
	// ErrHelm: a chart in a kustomization.
	ErrHelm = errors.New("charts are not rendered inside a kustomization: make it a Release of its own with content.helm")
	// ErrRoot: a file outside the folder of the kustomization that reads it.
	ErrRoot = errors.New("is not in or below the folder of its kustomization: only bases and components may lie elsewhere")
	// ErrCycle: a kustomization that leads back to itself, or a schema that does.
	ErrCycle = errors.New("leads back to itself")
	// ErrTooLarge: a limit of limits.go.
	ErrTooLarge = errors.New("too large")
	// ErrPair: an entry of a generator, of a Secret or with a file of pairs, that is no
	// pair. It is not repeated.
	ErrPair = errors.New("must be KEY=VALUE in UTF-8 (it is not repeated: it may be secret)")
	// ErrSecretFile: an entry of a generator of a Secret that leads to no file. It is not
	// repeated.
	ErrSecretFile = errors.New("there is no such file (its name is not repeated: a value in its place may be secret)")
	// ErrBuild: kustomize's own answer.
	ErrBuild = errors.New("kustomize")
)

// at puts the file, and the field where there is one, before a fault.
func at(file, field string, err error) error {
	if field == "" {
		return fmt.Errorf("%s: %w", file, err)
	}
	return fmt.Errorf("%s: %s: %w", file, field, err)
}

// entry names one entry of a field, if it can be the name of a file: what stands in the
// place of one may be a value, and an address may have a password.
func entry(text string, err error) error {
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			text = scheme + "://..." + rest[at:]
		}
	}
	if strings.ContainsAny(strings.TrimSpace(text), " \t\n{}[]\"'") {
		return fmt.Errorf("an entry that is no name of a file (it is not repeated: it may be secret): %w", err)
	}
	return fmt.Errorf("%q: %w", shown(text), err)
}

// shown cuts a word of the input to what a message may repeat.
func shown(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
