// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/google/cel-go/cel"
)

// languages are the environments in use, by their variables. One takes long to make and
// much room, so that none is made before the first expression is compiled, all programs
// over the same variables share one, and it goes when the last of them has gone.
var languages = struct {
	sync.Mutex
	known map[string]weak.Pointer[cel.Env]
}{known: map[string]weak.Pointer[cel.Env]{}}

func language(variables []string) (*cel.Env, error) {
	key := strings.Join(slices.Sorted(slices.Values(variables)), " ")
	languages.Lock()
	defer languages.Unlock()
	if env := languages.known[key].Value(); env != nil {
		return env, nil
	}
	options := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(MaxText), cel.ParserRecursionLimit(maxNesting),
		cel.RegexProgramSizeLimit(maxRegex), cel.CrossTypeNumericComparisons(true),
	}
	for _, name := range variables {
		kind := cel.DynType
		if name == cluster {
			kind = cel.MapType(cel.StringType, cel.StringType)
		}
		options = append(options, cel.Variable(name, kind))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("language over %s: %w", key, err)
	}
	languages.known[key] = weak.Make(env)
	return env, nil
}
