// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"kumodo.io/convoy/hub/render/facts"
)

// condition is the `if` of a mutation: a CEL expression over cluster, self and object.
type condition struct {
	program cel.Program
	world   *world
	// perObject is set when the expression names the object; else one answer is that
	// of all.
	perObject bool
	known     bool
	answer    bool
}

// language is what expressions may say. It is the same for all, is never changed, and
// takes long to make.
var language = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("cluster", cel.DynType), cel.Variable("self", cel.DynType), cel.Variable("object", cel.DynType),
		cel.ParserExpressionSizeLimit(maxExpression), cel.CrossTypeNumericComparisons(true),
	)
})

// newCondition compiles an expression; an empty one holds always.
func newCondition(expression string, w *world) (*condition, error) {
	if strings.TrimSpace(expression) == "" {
		return &condition{known: true, answer: true}, nil
	}
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(expression), maxExpression)
	}
	env, err := language()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	checked, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrExpression, shown(strings.Join(strings.Fields(err.Error()), " ")))
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%w: it gives %s, not true or false", ErrExpression, kind)
	}
	program, err := env.Program(checked, cel.CostLimit(maxCost))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	return &condition{program: program, world: w, perObject: strings.Contains(expression, "object")}, nil
}

// holds evaluates the expression for an object.
func (c *condition) holds(s *subject) (bool, error) {
	if c.known {
		return c.answer, nil
	}
	a := &activation{world: c.world, subject: s}
	value, _, err := c.program.Eval(a)
	if err != nil {
		return false, c.fault(s, a, err)
	}
	answer, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%w: it gives %s, not true or false", ErrExpression, value.Type().TypeName())
	}
	if !c.perObject {
		c.known, c.answer = true, bool(answer)
	}
	return bool(answer), nil
}

// fault says what the library says, and the cluster where a key was missing. Of a
// Secret's own values nothing is said: some errors repeat what could not be read.
func (c *condition) fault(s *subject, a *activation, err error) error {
	var stopped interpreter.EvalCancelledError
	switch {
	case errors.As(err, &stopped):
		return fmt.Errorf("%w: it costs too much", ErrExpression)
	case c.perObject && isSecret(s.object):
		return fmt.Errorf("%w (%s)", ErrExpression, onSecret)
	}
	text := shown(err.Error())
	if a.missed == "" {
		return fmt.Errorf("%w: %s", ErrExpression, text)
	}
	if cluster, ok := c.world.facts.Read(facts.Cluster + "name"); ok {
		text += " (not there on cluster " + shown(cluster) + ": " + shown(a.missed) + ")"
	}
	return fmt.Errorf("%w: %s", ErrExpression, text)
}

// activation resolves the three variables.
type activation struct {
	world   *world
	subject *subject
	missed  string // the last key of cluster or self that was not there
}

var _ cel.Activation = (*activation)(nil)

// ResolveName gives a variable.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "cluster":
		return &keyed{lookup: class{a.world, facts.Cluster}, activation: a}, true
	case "self":
		return &keyed{lookup: self{a.world}, activation: a}, true
	case "object":
		return a.subject.native(), true
	default:
		return nil, false
	}
}

// Parent is none.
func (a *activation) Parent() cel.Activation { return nil }
