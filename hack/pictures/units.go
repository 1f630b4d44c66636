package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// suffixes are the units that follow a number as it is.
var suffixes = map[string]string{
	"none": "", "ops": " ops/s", "opm": " ops/m", "cpm": " c/m", "reqps": " req/s", "wps": " wr/s",
}

// scale is a multiple of a unit.
type scale struct {
	from   float64
	factor float64
	suffix string
}

var (
	secondScales = []scale{
		{0, 1e6, " µs"},
		{1e-3, 1e3, " ms"},
		{1, 1, " s"},
		{60, 1. / 60, " min"},
		{3600, 1. / 3600, " h"},
		{86400, 1. / 86400, " days"},
		{2 * 31557600, 1. / 31557600, " years"},
	}
	byteScales = []scale{
		{0, 1, " B"},
		{1 << 10, 1. / (1 << 10), " KiB"},
		{1 << 20, 1. / (1 << 20), " MiB"},
		{1 << 30, 1. / (1 << 30), " GiB"},
	}
	shortScales = []scale{
		{0, 1, ""},
		{1e4, 1e-3, " K"},
		{1e6, 1e-6, " Mil"},
	}
)

// format is a value in a unit, by default with the three digits that count.
func format(value float64, unit string, decimals *int) (string, error) {
	if all := scales(unit); all != nil {
		scale := use(value, all)
		return number(value*scale.factor, decimals) + scale.suffix, nil
	}
	switch unit {
	case "percentunit":
		return number(value*100, decimals) + "%", nil
	case "dateTimeAsIso":
		return time.UnixMilli(int64(value)).UTC().Format(time.DateTime), nil
	}
	suffix, ok := suffixes[unit]
	if !ok {
		return "", fmt.Errorf("no unit %q", unit)
	}
	return number(value, decimals) + suffix, nil
}

// scales are those of units that have several.
func scales(unit string) []scale {
	switch unit {
	case "s":
		return secondScales
	case "bytes":
		return byteScales
	case "short":
		return shortScales
	}
	return nil
}

// scaleOf is by what a value is multiplied to be written.
func scaleOf(value float64, unit string) float64 {
	all := scales(unit)
	if all == nil {
		return 1
	}
	return use(value, all).factor
}

// use is the scale that suits a value; for 0 it is the unit itself.
func use(value float64, all []scale) scale {
	found := all[0]
	for _, s := range all {
		if math.Abs(value) >= s.from*(1-1e-9) || value == 0 && s.from <= 1 {
			found = s
		}
	}
	return found
}

func number(value float64, decimals *int) string {
	if decimals != nil {
		return strconv.FormatFloat(value, 'f', *decimals, 64)
	}
	digits := 0
	switch v := math.Abs(value); {
	case v == 0:
	case v < 10:
		digits = min(6, 2-int(math.Floor(math.Log10(v))))
	case v < 100:
		digits = 1
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}
