// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// keyed is a lookup as a map of CEL: each key that an expression names is asked for by
// itself, has() included; only who goes through the map asks for all of it.
type keyed struct {
	lookup
	activation *activation
}

var _ traits.Mapper = (*keyed)(nil)

// Find gives the value of a key.
func (k *keyed) Find(key ref.Val) (ref.Val, bool) {
	text, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	value, ok := k.find(string(text))
	if !ok {
		k.activation.missed = k.called() + "." + string(text)
		return nil, false
	}
	if inner, ok := value.(lookup); ok {
		return &keyed{lookup: inner, activation: k.activation}, true
	}
	return types.DefaultTypeAdapter.NativeToValue(value), true
}

// Get gives the value of a key, or an error.
func (k *keyed) Get(key ref.Val) ref.Val {
	if value, ok := k.Find(key); ok {
		return value
	}
	return types.NewErr("no such key")
}

// Contains is the operator in.
func (k *keyed) Contains(key ref.Val) ref.Val {
	_, ok := k.Find(key)
	return types.Bool(ok)
}

func (k *keyed) whole() traits.Mapper {
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, k.all())
}

// Iterator goes through the keys.
func (k *keyed) Iterator() traits.Iterator { return k.whole().Iterator() }

// Size is how many keys there are.
func (k *keyed) Size() ref.Val { return k.whole().Size() }

// Equal compares with another map.
func (k *keyed) Equal(other ref.Val) ref.Val { return k.whole().Equal(other) }

// ConvertToNative gives a Go value.
func (k *keyed) ConvertToNative(kind reflect.Type) (any, error) {
	return k.whole().ConvertToNative(kind)
}

// ConvertToType gives a value of another type of CEL.
func (k *keyed) ConvertToType(kind ref.Type) ref.Val { return k.whole().ConvertToType(kind) }

// Type is map.
func (k *keyed) Type() ref.Type { return types.MapType }

// Value is the map in Go's form.
func (k *keyed) Value() any { return k.all() }
