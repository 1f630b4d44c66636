package main

import (
	"fmt"
	"image/color"
)

// What a light background has.
var (
	background = rgb(0xf4f5f5)
	card       = rgb(0xffffff)
	border     = rgb(0xdcdde0)
	gridLine   = rgb(0xebecee)
	text       = rgb(0x24292e)
	faint      = rgb(0x6b7078)
	linkText   = rgb(0x1f62e0)
)

// named are Grafana's colors, in its light theme.
var named = map[string]color.RGBA{
	"super-light-blue": rgb(0x8ab8ff), "light-blue": rgb(0x5794f2), "blue": rgb(0x3274d9), "dark-blue": rgb(0x1250b0),
	"super-light-green": rgb(0x96d98d), "light-green": rgb(0x73bf69), "green": rgb(0x56a64b), "dark-green": rgb(0x19730e),
	"super-light-red": rgb(0xff7383), "light-red": rgb(0xf2495c), "red": rgb(0xe02f44), "dark-red": rgb(0xad0317),
	"super-light-purple": rgb(0xca95e5), "light-purple": rgb(0xb877d9), "purple": rgb(0xa352cc), "dark-purple": rgb(0x7c2ea3),
	"super-light-orange": rgb(0xffb357), "light-orange": rgb(0xff9830), "orange": rgb(0xff780a), "dark-orange": rgb(0xe55400),
	"super-light-yellow": rgb(0xffee52), "light-yellow": rgb(0xfade2a), "yellow": rgb(0xf2cc0c), "dark-yellow": rgb(0xcc9d00),
	"text": text,
}

// palette is for series without a color of their own, one after the other.
var palette = []color.RGBA{
	rgb(0x56a64b), rgb(0xe0b400), rgb(0x3274d9), rgb(0xff780a), rgb(0xe02f44), rgb(0xa352cc), rgb(0x19730e), rgb(0xcc9d00),
	rgb(0x1250b0), rgb(0xe55400), rgb(0xad0317), rgb(0x7c2ea3), rgb(0x96d98d), rgb(0xffee52), rgb(0x8ab8ff), rgb(0xffb357),
}

func rgb(hex uint32) color.RGBA {
	return color.RGBA{R: byte(hex >> 16 & 0xff), G: byte(hex >> 8 & 0xff), B: byte(hex & 0xff), A: 0xff}
}

// colorOf is a color by its name.
func colorOf(name string) (color.RGBA, error) {
	c, ok := named[name]
	if !ok {
		return c, fmt.Errorf("no color %q", name)
	}
	return c, nil
}

// seen is a color through which another shows: 0 is nothing of it, 1 nothing else.
func seen(c color.RGBA, share float64) color.NRGBA {
	return color.NRGBA{R: c.R, G: c.G, B: c.B, A: byte(share*255 + 0.5)}
}
