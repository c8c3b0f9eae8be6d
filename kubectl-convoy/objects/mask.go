// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"

	"kumodo.io/convoy/pkg/manifest"
)

const (
	keyBytes = 32
	// sealed stands for a value that is not shown.
	sealed = "<sealed>"
)

// marker is what stands for a value in the objects layer, or in what was printed of it.
var marker = regexp.MustCompile(`<sealed(?::[0-9a-f]{64})?>`)

// Masker hides the values of Secrets in the way of the hub, under a key of its own that
// is forgotten: equal values have equal marks as long as it lives.
type Masker struct{ key []byte }

// NewMasker makes one.
func NewMasker() *Masker {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails, it ends the process instead
	return &Masker{key: key}
}

// Mask arranges the set and gives its objects in the order in which they are applied.
func (m *Masker) Mask(set *manifest.Set) ([]Object, error) {
	var layer bytes.Buffer
	// The salt is for the sealed layer, which goes nowhere.
	if _, err := set.Write(&layer, io.Discard, m.key, make([]byte, keyBytes)); err != nil {
		return nil, err
	}
	return Lines(&layer)
}

// mark of one value, as Mask makes it.
func (m *Masker) mark(value string) string {
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(value)) // a hash never fails to be written to
	return "<sealed:" + hex.EncodeToString(mac.Sum(nil)) + ">"
}

// Lines reads an objects layer.
func Lines(layer io.Reader) ([]Object, error) {
	scanner := bufio.NewScanner(layer)
	scanner.Buffer(nil, manifest.MaxLineBytes+1)
	var list []Object
	for header := true; scanner.Scan(); header = false {
		if header {
			continue
		}
		object, err := Read(bytes.Clone(scanner.Bytes()))
		if err != nil {
			return nil, err
		}
		list = append(list, object)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read the objects: %w", err)
	}
	return list, nil
}

// Blank gives the objects without marks, which differ from run to run.
func Blank(list []Object) []Object {
	out := make([]Object, 0, len(list))
	for _, object := range list {
		object.Text = marker.ReplaceAll(object.Text, []byte(sealed))
		out = append(out, object)
	}
	return out
}
