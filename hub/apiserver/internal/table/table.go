// SPDX-License-Identifier: Apache-2.0

// Package table prints objects as the tables that kubectl shows. Ages are
// computed while printing and never stored. It stands beside the flow, where
// people look at what came of it.
package table

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// Limits of one cell.
const (
	maxMessage = 200 // runes
	shortHex   = 12  // digits of a digest or commit
)

// Column is one column of the table of a kind.
type Column[T runtime.Object] struct {
	Name        string
	Description string
	// Wide columns are shown with -o wide only.
	Wide bool
	// Integer columns are printed as numbers.
	Integer bool
	// Cell gives the text, or the number of an Integer column.
	Cell func(T) any
}

// New makes a converter for a kind. NAME is always the first column, AGE the
// last of the narrow ones.
func New[T runtime.Object](c clock.PassiveClock, columns ...Column[T]) rest.TableConvertor {
	return &converter[T]{clock: c, columns: columns}
}

type converter[T runtime.Object] struct {
	clock   clock.PassiveClock
	columns []Column[T]
}

// ConvertToTable implements rest.TableConvertor.
func (c *converter[T]) ConvertToTable(_ context.Context, object runtime.Object, options runtime.Object) (*metav1.Table, error) {
	t := &metav1.Table{}
	if opt, ok := options.(*metav1.TableOptions); !ok || !opt.NoHeaders {
		t.ColumnDefinitions = c.definitions()
	}
	add := func(o runtime.Object) error {
		obj, ok := o.(T)
		if !ok {
			return fmt.Errorf("%w: %T", ErrUnexpectedType, o)
		}
		m, err := meta.Accessor(o)
		if err != nil {
			return fmt.Errorf("read metadata: %w", err)
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: c.cells(obj, m), Object: runtime.RawExtension{Object: o}})
		return nil
	}
	if meta.IsListType(object) {
		l, err := meta.ListAccessor(object)
		if err != nil {
			return nil, fmt.Errorf("read list metadata: %w", err)
		}
		t.ResourceVersion = l.GetResourceVersion()
		t.Continue = l.GetContinue()
		t.RemainingItemCount = l.GetRemainingItemCount()
		if err := meta.EachListItem(object, add); err != nil {
			return nil, fmt.Errorf("print list: %w", err)
		}
		return t, nil
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	t.ResourceVersion = m.GetResourceVersion()
	if err := add(object); err != nil {
		return nil, err
	}
	return t, nil
}

func (c *converter[T]) definitions() []metav1.TableColumnDefinition {
	defs := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "Name of the object, unique in its namespace."}}
	for _, wide := range []bool{false, true} {
		for _, col := range c.columns {
			if col.Wide != wide {
				continue
			}
			def := metav1.TableColumnDefinition{Name: col.Name, Type: "string", Description: col.Description}
			if col.Integer {
				def.Type = "integer"
			}
			if wide {
				def.Priority = 1
			}
			defs = append(defs, def)
		}
		if !wide {
			defs = append(defs, metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "How long ago the object was created."})
		}
	}
	return defs
}

func (c *converter[T]) cells(obj T, m metav1.Object) []any {
	cells := []any{m.GetName()}
	for _, wide := range []bool{false, true} {
		for _, col := range c.columns {
			if col.Wide == wide {
				cells = append(cells, col.Cell(obj))
			}
		}
		if !wide {
			cells = append(cells, age(c.clock.Now(), m.GetCreationTimestamp()))
		}
	}
	return cells
}

func age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since.Time))
}

// Until prints how long it is until then, "expired" when it is over, and
// nothing when there is no such time.
func Until(now time.Time, then *metav1.Time) string {
	switch {
	case then == nil || then.IsZero():
		return ""
	case !then.After(now):
		return "expired"
	default:
		return duration.HumanDuration(then.Sub(now))
	}
}

// Condition gives status, reason and message of a condition: Unknown, and
// nothing, when it is not there.
func Condition(conditions []metav1.Condition, kind string) (status, reason, message string) {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return string(metav1.ConditionUnknown), "", ""
	}
	return string(c.Status), c.Reason, c.Message
}

// Message makes a message fit into one line.
func Message(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > maxMessage {
		return string(line[:maxMessage-3]) + "..."
	}
	return string(line)
}

// Digest shortens sha256:<hex>, and a revision that ends in a long hexadecimal
// number.
func Digest(text string) string {
	head, tail := "", text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		head, tail = text[:i+1], text[i+1:]
	}
	if len(tail) >= 40 {
		tail = tail[:shortHex]
	}
	return head + tail
}
