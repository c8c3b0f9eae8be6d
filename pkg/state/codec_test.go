// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"io"
	"testing"
)

func TestCodecsThatWereLetGoWhileOneIsInUseAreMadeAnew(t *testing.T) {
	t.Parallel()
	c, err := newCodecs()
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Repeat([]byte("layer "), 100_000)
	packed := c.pack(plain)
	open, err := c.open(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	c.idle()
	got, err := io.ReadAll(open)
	if err != nil || !bytes.Equal(got, plain) {
		t.Errorf("a layer that was open reads %d bytes, %v", len(got), err)
	}
	if err := open.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		c.idle()
		got, err = c.expand(c.pack(plain), int64(len(plain)+1))
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("packed and expanded again: %d bytes, %v", len(got), err)
		}
	}
	if c.idle(); len(c.encoders)+len(c.decoders) > 0 {
		t.Errorf("%d encoders and %d decoders are kept", len(c.encoders), len(c.decoders))
	}
}
