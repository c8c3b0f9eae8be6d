// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rotating = []string{HubCA, OrderKey, SealingKey}

func create(t *testing.T, name string) map[string][]byte {
	t.Helper()
	data, err := Create(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func list(t *testing.T, name string, data map[string][]byte) []Entry {
	t.Helper()
	entries, err := List(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestARotatedKeyStaysUntilItIsRetired(t *testing.T) {
	for _, name := range rotating {
		t.Run(name, func(t *testing.T) {
			first := create(t, name)
			was := list(t, name, first)[0]
			second, fresh, err := Rotate(name, first, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			entries := list(t, name, second)
			if len(entries) != 2 || entries[0].ID != fresh.ID || entries[0].Old || entries[1].ID != was.ID || !entries[1].Old {
				t.Fatalf("after the rotation: %+v", entries)
			}
			if len(list(t, name, first)) != 1 {
				t.Error("the rotation changed what it was given")
			}
			third, err := Retire(name, second, was.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(entries[:1], list(t, name, third)); diff != "" {
				t.Errorf("after the retirement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHubKeepsItsNameWhenItsFirstCAIsRetired(t *testing.T) {
	data := create(t, HubCA)
	name, err := HubID(data)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		old := list(t, HubCA, data)[0].ID
		if data, _, err = Rotate(HubCA, data, time.Now()); err != nil {
			t.Fatal(err)
		}
		if data, err = Retire(HubCA, data, old); err != nil {
			t.Fatal(err)
		}
		if now, err := HubID(data); err != nil || now != name {
			t.Fatalf("called %q, was %q: %v", now, name, err)
		}
	}
}

func TestWhatCannotBeDoneToASetIsRefusedByName(t *testing.T) {
	full := create(t, OrderKey)
	for range maxOld {
		var err error
		if full, _, err = Rotate(OrderKey, full, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	swapped := maps.Clone(full)
	ids := oldIDs(full)
	swapped[oldPrefix+ids[0]+"."+fieldKey] = full[oldPrefix+ids[1]+"."+fieldKey]
	rotate := func(name string, data map[string][]byte) error {
		_, _, err := Rotate(name, data, time.Now())
		return err
	}
	retire := func(name string, data map[string][]byte, id string) error {
		_, err := Retire(name, data, id)
		return err
	}
	for name, c := range map[string]struct{ got, want error }{
		"a set of another name":                     {rotate("other", nil), ErrUnknownSet},
		"a rotation before the hub made a key":      {rotate(HubCA, nil), ErrEmpty},
		"a rotation of the key that masks":          {rotate(MACKey, create(t, MACKey)), ErrFixed},
		"a rotation of the serving CA":              {rotate(ServingCA, create(t, ServingCA)), ErrFixed},
		"a rotation with too many old keys":         {rotate(OrderKey, full), ErrTooMany},
		"a rotation of a key that cannot be read":   {rotate(OrderKey, map[string][]byte{fieldKey: []byte("no")}), ErrBroken},
		"an old key under the name of another":      {rotate(OrderKey, swapped), ErrBroken},
		"a retirement of a key that is not there":   {retire(OrderKey, full, "0000000000000000"), ErrNoSuchKey},
		"a retirement of the current key":           {retire(OrderKey, full, list(t, OrderKey, full)[0].ID), ErrCurrent},
		"a retirement in a set that has no old key": {retire(HubCA, create(t, HubCA), ""), ErrNoSuchKey},
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(c.got, c.want) {
				t.Errorf("got %v, want %v", c.got, c.want)
			}
		})
	}
}

func TestAListingHoldsNoSecret(t *testing.T) {
	for _, name := range Names() {
		for _, e := range list(t, name, create(t, name)) {
			if len(e.ID) != 16 {
				t.Errorf("%s: ID %q, want 16 hexadecimal digits of a hash", name, e.ID)
			}
		}
	}
}
