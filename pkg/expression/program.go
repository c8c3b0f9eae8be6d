// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// Type of what an expression gives.
type Type uint8

// Types.
const (
	Bool Type = iota
	Text
)

// Program is a compiled expression. It can be used by many at once.
type Program struct {
	program cel.Program
	reads   []string
}

// Compile reads an expression over some variables. Of those the names cluster and self
// stand for facts, of which single keys may be read only; any other can hold any value.
// Errors are ErrTooLarge, ErrSyntax and ErrWhole.
func Compile(text string, as Type, variables ...string) (*Program, error) {
	switch {
	case len(text) > MaxText:
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(text), MaxText)
	case strings.TrimSpace(text) == "":
		return nil, fmt.Errorf("%w: it is empty", ErrSyntax)
	}
	env, err := language(variables)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	checked, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrSyntax, shown(err.Error()))
	}
	want, called := cel.BoolType, "true or false"
	if as == Text {
		want, called = cel.StringType, "a text"
	}
	if kind := checked.OutputType(); !kind.IsExactType(want) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%w: it gives %s, not %s", ErrSyntax, kind, called)
	}
	reads, err := readsOf(checked.NativeRep().Expr(), variables)
	if err != nil {
		return nil, err
	}
	program, err := env.Program(checked, cel.CostTracking(deepCost{}), cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrSyntax, shown(err.Error()))
	}
	return &Program{program: program, reads: reads}, nil
}

// Reads lists what the program reads of cluster and self, sorted, as in cluster.region
// and self.labels.team. A key may have dots of its own: a path is what Facts takes.
func (p *Program) Reads() []string { return slices.Clone(p.reads) }

// Bool evaluates a program of that type. Errors are ErrFailed and ErrCost.
func (p *Program) Bool(variables map[string]any) (bool, error) {
	value, err := p.eval(variables)
	if err != nil {
		return false, err
	}
	answer, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("%w: it gives no true or false", ErrFailed)
	}
	return answer, nil
}

// Text evaluates a program of that type. Errors are ErrFailed and ErrCost.
func (p *Program) Text(variables map[string]any) (string, error) {
	value, err := p.eval(variables)
	if err != nil {
		return "", err
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("%w: it gives no text", ErrFailed)
	}
	if len(text) > maxResult {
		text = strings.ToValidUTF8(text[:maxResult], "")
	}
	return text, nil
}

func (p *Program) eval(variables map[string]any) (any, error) {
	value, _, err := p.program.Eval(variables)
	var stopped interpreter.EvalCancelledError
	switch {
	case errors.As(err, &stopped):
		return nil, ErrCost
	case err != nil:
		return nil, fmt.Errorf("%w: %s", ErrFailed, shown(err.Error()))
	case types.IsUnknownOrError(value):
		return nil, ErrFailed
	}
	return value.Value(), nil
}
