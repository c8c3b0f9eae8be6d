// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string // "" when they are fine
	}{
		"what the manifests say":           {[]string{"--namespace=convoy-agent"}, ""},
		"no namespace":                     {nil, "--namespace"},
		"a namespace that cannot be":       {[]string{"--namespace=a", "--target-namespaces=b,C"}, "--target-namespaces"},
		"an address without a port":        {[]string{"--namespace=a", "--metrics-addr=x"}, "--metrics-addr"},
		"a gateway without a host":         {[]string{"--namespace=a", "--gateway-url=wss:"}, "--gateway-url"},
		"an end before its time":           {[]string{"--namespace=a", "--restart-after=-1s"}, "--restart-after"},
		"dials as soon as an agent may":    {[]string{"--namespace=a", "--redial-within=500ms"}, ""},
		"dials without a pause":            {[]string{"--namespace=a", "--redial-within=0"}, "--redial-within"},
		"dials that hardly come any more ": {[]string{"--namespace=a", "--redial-within=11m"}, "--redial-within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := New()
			flags := pflag.NewFlagSet("convoy-agent", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want one that names %q", err, c.want)
			}
		})
	}
}
