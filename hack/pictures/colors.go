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

// named are Grafana's colors, dark enough for a light background.
var named = map[string]color.RGBA{
	"green": rgb(0x56a64b), "light-green": rgb(0x96d98d), "dark-green": rgb(0x37872d),
	"yellow": rgb(0xe0b400), "orange": rgb(0xff780a), "dark-orange": rgb(0xfa6400),
	"red": rgb(0xe02f44), "dark-red": rgb(0xad0317),
	"blue": rgb(0x3274d9), "light-blue": rgb(0x5fb6e8), "dark-blue": rgb(0x1f60c4), "super-light-blue": rgb(0x9fc3f5),
	"purple": rgb(0xa352cc), "light-purple": rgb(0xd4a5ec), "light-orange": rgb(0xffb357), "light-red": rgb(0xff8f9c), "text": text,
}

// palette is for series without a color of their own, one after the other.
var palette = []color.RGBA{
	rgb(0x56a64b), rgb(0xe0b400), rgb(0x3fa9d9), rgb(0xff780a), rgb(0xe02f44), rgb(0x1f60c4), rgb(0xb1529f), rgb(0x705da0),
	rgb(0x37872d), rgb(0x9c7a00), rgb(0x447ebc), rgb(0xc15c17), rgb(0x890f02), rgb(0x0a437c), rgb(0x6d1f62), rgb(0x584477),
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
