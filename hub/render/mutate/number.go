// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"strconv"
	"strings"
)

func toInt(value any) (int64, error) {
	switch v := value.(type) {
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return 0, because("int: the text is no whole number")
		}
		return n, nil
	case float64:
		return int64(v), nil
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	}
	return 0, because("int: %s is no number", kindOf(value))
}

func toFloat(value any) (float64, error) {
	switch v := value.(type) {
	case string:
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return 0, because("float64: the text is no number")
		}
		return n, nil
	case float64:
		return v, nil
	}
	n, err := toInt(value)
	return float64(n), err
}

func toBool(value any) (bool, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		switch v {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, because("toBool: it is neither true nor false")
}

func arithmetic(do func(a, b int64) int64) func(a, b any) (int64, error) {
	return func(a, b any) (int64, error) {
		x, err := toInt(a)
		if err != nil {
			return 0, err
		}
		y, err := toInt(b)
		if err != nil {
			return 0, err
		}
		return do(x, y), nil
	}
}

func divide(a, b any) (int64, error) {
	if n, err := toInt(b); err != nil || n == 0 {
		return 0, because("div: by nothing")
	}
	return arithmetic(func(x, y int64) int64 { return x / y })(a, b)
}

func modulo(a, b any) (int64, error) {
	if n, err := toInt(b); err != nil || n == 0 {
		return 0, because("mod: by nothing")
	}
	return arithmetic(func(x, y int64) int64 { return x % y })(a, b)
}
