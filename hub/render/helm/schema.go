// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"helm.sh/helm/v3/pkg/chart"
)

// schemaName stands for the schema in references inside of it.
const schemaName = "file:///values.schema.json"

// errReference: a schema refers to something outside of itself.
var errReference = errors.New("refers to something outside of itself, which is not read")

// validate holds values against the schemas of a chart and its subcharts, as Helm
// does, except that a schema reads no other file and dials nobody. It says what does
// not fit, and never what the value is.
func validate(c *chart.Chart, values map[string]any, secrets []string) error {
	var faults []string
	if err := validateAll(c, values, &faults); err != nil {
		return err
	}
	if len(faults) == 0 {
		return nil
	}
	more := ""
	if len(faults) > maxShown {
		more = fmt.Sprintf("; and %d more", len(faults)-maxShown)
		faults = faults[:maxShown]
	}
	return fmt.Errorf("chart %s: %w: %s", c.Name(), ErrSchema, cut(strings.Join(faults, "; ")+more, secrets))
}

func validateAll(c *chart.Chart, values map[string]any, faults *[]string) error {
	if c.Schema != nil {
		if err := validateOne(c, values, faults); err != nil {
			return err
		}
	}
	for _, sub := range c.Dependencies() {
		inner, there := values[sub.Name()]
		if !there || inner == nil {
			continue
		}
		table, ok := inner.(map[string]any)
		if !ok {
			*faults = append(*faults, fmt.Sprintf("%s must be a map: it holds the values of a subchart", sub.Name()))
			continue
		}
		if err := validateAll(sub, table, faults); err != nil {
			return err
		}
	}
	return nil
}

func validateOne(c *chart.Chart, values map[string]any, faults *[]string) error {
	broken := func(err error) error {
		return fmt.Errorf("%s/values.schema.json: %w: the schema cannot be used: %s", c.ChartFullPath(), ErrSchema, cut(err.Error(), nil))
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
	if err != nil {
		return broken(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothingElse{})
	if err := compiler.AddResource(schemaName, document); err != nil {
		return broken(err)
	}
	schema, err := compiler.Compile(schemaName)
	if err != nil {
		return broken(err)
	}
	if values == nil {
		values = map[string]any{}
	}
	var fault *jsonschema.ValidationError
	if err := schema.Validate(values); errors.As(err, &fault) {
		collect(c.ChartFullPath(), fault, faults)
	} else if err != nil {
		return broken(err)
	}
	return nil
}

// nothingElse is the loader of a schema's references: names without a place fit
// everything, as in Helm, and all else is refused.
type nothingElse struct{}

func (nothingElse) Load(name string) (any, error) {
	if u, err := url.Parse(name); err == nil && u.Scheme == "urn" {
		return true, nil
	}
	return nil, errReference
}

var english = message.NewPrinter(language.English)

// collect names what does not fit, from the leaves of the tree of faults.
func collect(chart string, fault *jsonschema.ValidationError, faults *[]string) {
	switch k := fault.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		*faults = append(*faults, fmt.Sprintf("%s: %s", at(chart, fault), k.LocalizedString(english)))
		return
	}
	if len(fault.Causes) > 0 {
		for _, cause := range fault.Causes {
			collect(chart, cause, faults)
		}
		return
	}
	var text string
	switch k := fault.ErrorKind.(type) {
	case *kind.Pattern:
		text = "does not match " + k.Want
	case *kind.Format:
		text = "is not a valid " + k.Want
	case *kind.InvalidJsonValue, *kind.ContentEncoding, *kind.ContentMediaType, *kind.ContentSchema:
		text = "does not fit"
	default:
		text = k.LocalizedString(english)
	}
	*faults = append(*faults, fmt.Sprintf("%s: %s", at(chart, fault), text))
}

// at is the place of a value, by the names of the chart.
func at(chart string, fault *jsonschema.ValidationError) string {
	place := "/" + strings.Join(fault.InstanceLocation, "/")
	if strings.Contains(chart, "/") {
		return place + " of " + chart
	}
	return place
}
