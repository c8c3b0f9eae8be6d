// SPDX-License-Identifier: Apache-2.0

package helmrepo

import (
	"encoding/json"
	"errors"
	"io"

	"kumodo.io/convoy/hub/source/fault"
)

// meter fails when more is read for one piece than a piece may have, so that no
// piece is held in memory that is larger.
type meter struct {
	r    io.Reader
	left int
}

var errPiece = fault.Failf(fault.ClassTooLarge, "one piece of the index has more than %d KiB", maxEntryBytes>>10)

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errPiece
	}
	if len(p) > m.left {
		p = p[:m.left]
	}
	n, err := m.r.Read(p)
	m.left -= n
	return n, err
}

// jsonScanner walks an index that is JSON, piece by piece.
type jsonScanner struct {
	*json.Decoder
	meter *meter
}

func scanJSON(r io.Reader, chart string, each func(entry) bool) (isIndex bool, err error) {
	m := &meter{r: r}
	s := jsonScanner{Decoder: json.NewDecoder(m), meter: m}
	if _, err := s.next(); err != nil { // the brace that was seen
		return false, err
	}
	err = s.object(func(key string) error {
		if key != "entries" {
			return s.skip()
		}
		isIndex = true
		if open, err := s.next(); err != nil || open != json.Delim('{') {
			return err
		}
		return s.object(func(key string) error {
			if key != chart || chart == "" {
				return s.skip()
			}
			return s.versions(each)
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return isIndex, err
}

// errNoJSON is of a text that began as JSON.
var errNoJSON = fault.Failf(fault.ClassInvalid, "the index begins as JSON and is none")

// errEnough ends the walk early.
var errEnough = errors.New("enough was read")

func (s jsonScanner) versions(each func(entry) bool) error {
	if open, err := s.next(); err != nil || open != json.Delim('[') {
		return err
	}
	for s.More() {
		var one entry
		s.meter.left = maxEntryBytes
		if err := s.Decode(&one); err != nil {
			return broken(err)
		}
		if !each(one) {
			return errEnough
		}
	}
	_, err := s.next()
	return err
}

// object gives the keys of an object whose brace was read; value reads the value.
func (s jsonScanner) object(value func(key string) error) error {
	for {
		token, err := s.next()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return nil // the closing brace
		}
		if err := value(key); err != nil {
			return err
		}
	}
}

// skip reads past a value.
func (s jsonScanner) skip() error {
	for depth := 0; ; {
		token, err := s.next()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return nil
		}
	}
}

func (s jsonScanner) next() (json.Token, error) {
	s.meter.left = maxEntryBytes
	token, err := s.Token()
	if err != nil {
		return nil, broken(err)
	}
	return token, nil
}

// broken sorts an error that came while JSON was read.
func broken(err error) error {
	var own *fault.Error
	if errors.As(err, &own) {
		return err
	}
	return errNoJSON
}
