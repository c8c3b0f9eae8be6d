// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// compile parses one text and rewrites it, so that each field that it names is asked
// for by our own function: the library would look it up in a map that has to hold all
// there is, and would tell nobody which ones counted.
func compile(text string, r *run) (*template.Template, error) {
	known := r.functions()
	trees, err := parse.Parse("text", text, "", "", known, builtins)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrTemplate, shown(strings.TrimPrefix(err.Error(), "template: ")))
	}
	if len(trees) != 1 || trees["text"] == nil {
		return nil, fmt.Errorf("%w: define, block and template are not there", ErrTemplate)
	}
	tree := trees["text"]
	rw := &rewriter{}
	if action := single(tree.Root); action != nil {
		rw.pipe(action.Pipe)
		action.Pipe = call("keep", action.Pipe)
	} else {
		rw.list(tree.Root)
	}
	if rw.err != nil {
		return nil, rw.err
	}
	return template.New("text").Funcs(known).Funcs(r.internals()).AddParseTree("text", tree)
}

// builtins are the functions of the library that may be used. Those that could grow a
// text without bound are our own.
var builtins = map[string]any{
	"and": 0, "or": 0, "not": 0, "eq": 0, "ne": 0, "lt": 0, "le": 0, "gt": 0, "ge": 0, "len": 0,
}

// single gives the one action that a text is, or nil.
func single(list *parse.ListNode) *parse.ActionNode {
	if len(list.Nodes) != 1 {
		return nil
	}
	action, ok := list.Nodes[0].(*parse.ActionNode)
	if !ok || len(action.Pipe.Decl) > 0 {
		return nil
	}
	return action
}

// rewriter changes the nodes of one template in place.
type rewriter struct{ err error }

func (w *rewriter) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: "+format, append([]any{ErrTemplate}, args...)...)
	}
}

func (w *rewriter) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		w.node(node)
	}
}

func (w *rewriter) node(node parse.Node) {
	switch n := node.(type) {
	case *parse.ActionNode:
		w.pipe(n.Pipe)
		if len(n.Pipe.Decl) == 0 {
			n.Pipe = call("text", n.Pipe)
		}
	case *parse.IfNode:
		w.branch(&n.BranchNode)
	case *parse.WithNode:
		w.branch(&n.BranchNode)
	case *parse.RangeNode:
		w.branch(&n.BranchNode)
		// Each turn is counted: a range over a number writes nothing and may be endless.
		step := &parse.ActionNode{NodeType: parse.NodeAction, Pos: n.Pos, Line: n.Line, Pipe: call("step")}
		n.List.Nodes = append([]parse.Node{step}, n.List.Nodes...)
	case *parse.TemplateNode:
		w.fail("define, block and template are not there")
	}
}

func (w *rewriter) branch(n *parse.BranchNode) {
	w.pipe(n.Pipe)
	w.list(n.List)
	w.list(n.ElseList)
}

func (w *rewriter) pipe(pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	for i, command := range pipe.Cmds {
		if len(command.Args) == 0 {
			continue
		}
		if _, function := command.Args[0].(*parse.IdentifierNode); !function && (i > 0 || len(command.Args) > 1) {
			w.fail("%q is no function", shown(command.Args[0].String()))
			return
		}
		for j, argument := range command.Args {
			command.Args[j] = w.argument(argument)
		}
	}
}

// argument replaces chains of fields by calls.
func (w *rewriter) argument(node parse.Node) parse.Node {
	switch n := node.(type) {
	case *parse.FieldNode:
		return field2call(&parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.Ident)
	case *parse.VariableNode:
		if len(n.Ident) > 1 {
			return field2call(&parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}, n.Ident[1:])
		}
	case *parse.ChainNode:
		return field2call(w.argument(n.Node), n.Field)
	case *parse.PipeNode:
		w.pipe(n)
	}
	return node
}

// field2call makes a call of get.
func field2call(base parse.Node, keys []string) parse.Node {
	arguments := []parse.Node{base}
	for _, key := range keys {
		arguments = append(arguments, &parse.StringNode{NodeType: parse.NodeString, Pos: base.Position(), Quoted: strconv.Quote(key), Text: key})
	}
	return call("get", arguments...)
}

// call makes a pipeline of one call.
func call(function string, arguments ...parse.Node) *parse.PipeNode {
	command := &parse.CommandNode{NodeType: parse.NodeCommand, Args: append([]parse.Node{parse.NewIdentifier(function)}, arguments...)}
	return &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{command}}
}
