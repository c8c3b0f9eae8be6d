// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// The variables that hold facts.
const (
	cluster = "cluster"
	self    = "self"
)

// fields of self, and whether each is a map of its own.
var fields = map[string]bool{
	"name": false, "namespace": false, "targetNamespace": false, "labels": true, "annotations": true,
}

// reader collects the paths that an expression reads.
type reader struct {
	facts map[string]bool // variables that hold facts
	inner map[string]int  // names that a macro gives to something else, for now
	paths map[string]bool
}

func readsOf(e ast.Expr, variables []string) ([]string, error) {
	r := &reader{facts: map[string]bool{}, inner: map[string]int{}, paths: map[string]bool{}}
	for _, name := range variables {
		r.facts[name] = name == cluster || name == self
	}
	if err := r.walk(e); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(r.paths)), nil
}

func (r *reader) walk(e ast.Expr) error {
	if root, key, keyed := r.step(e); keyed {
		return r.read(root, key)
	}
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); r.isFact(name) {
			return whole(name)
		}
	case ast.SelectKind:
		return r.walk(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			if err := r.walk(call.Target()); err != nil {
				return err
			}
		}
		return r.all(call.Args())
	case ast.ListKind:
		return r.all(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			if err := r.all([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()}); err != nil {
				return err
			}
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			if err := r.walk(field.AsStructField().Value()); err != nil {
				return err
			}
		}
	case ast.ComprehensionKind:
		return r.loop(e.AsComprehension())
	case ast.LiteralKind, ast.UnspecifiedExprKind:
	}
	return nil
}

func (r *reader) all(list []ast.Expr) error {
	for _, e := range list {
		if err := r.walk(e); err != nil {
			return err
		}
	}
	return nil
}

// loop goes through a macro, in which its own variables hide ours.
func (r *reader) loop(c ast.ComprehensionExpr) error {
	if err := r.all([]ast.Expr{c.IterRange(), c.AccuInit()}); err != nil {
		return err
	}
	names := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
	for _, name := range names {
		r.inner[name]++
	}
	err := r.all([]ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()})
	for _, name := range names {
		r.inner[name]--
	}
	return err
}

// step takes one key off an expression: root.key, root["key"] and "key" in root.
func (r *reader) step(e ast.Expr) (root ast.Expr, key string, ok bool) {
	var index ast.Expr
	switch e.Kind() {
	case ast.SelectKind:
		root, key = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		switch {
		case len(call.Args()) != 2:
			return nil, "", false
		case call.FunctionName() == operators.Index:
			root, index = call.Args()[0], call.Args()[1]
		case call.FunctionName() == operators.In:
			root, index = call.Args()[1], call.Args()[0]
		default:
			return nil, "", false
		}
	default:
		return nil, "", false
	}
	if !r.ofFacts(root) {
		return nil, "", false
	}
	if index != nil {
		if index.Kind() != ast.LiteralKind {
			return nil, "", false // which key is known only later: walk finds the root
		}
		text, isText := index.AsLiteral().(types.String)
		if !isText {
			return nil, "", false
		}
		key = string(text)
	}
	return root, key, true
}

// ofFacts says whether e is cluster, self or a map of self.
func (r *reader) ofFacts(e ast.Expr) bool {
	if e.Kind() == ast.IdentKind {
		return r.isFact(e.AsIdent())
	}
	root, key, ok := r.step(e)
	return ok && root.Kind() == ast.IdentKind && root.AsIdent() == self && fields[key]
}

func (r *reader) isFact(name string) bool { return r.facts[name] && r.inner[name] == 0 }

// read notes one key of cluster, self or a map of self.
func (r *reader) read(root ast.Expr, key string) error {
	if root.Kind() != ast.IdentKind {
		_, parent, _ := r.step(root)
		r.paths[self+"."+parent+"."+key] = true
		return nil
	}
	if root.AsIdent() == self {
		isMap, known := fields[key]
		switch {
		case !known:
			return fmt.Errorf("%w: self has name, namespace, targetNamespace, labels and annotations, not %s", ErrSyntax, shown(key))
		case isMap:
			return whole(self + "." + key)
		}
	}
	r.paths[root.AsIdent()+"."+key] = true
	return nil
}

func whole(name string) error {
	return fmt.Errorf("%w: %s is read as a whole here; write %s.KEY or %s[\"KEY\"]", ErrWhole, name, name, name)
}
