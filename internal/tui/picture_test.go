package tui

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge"
)

func encoded(t *testing.T, width, height int) []byte {
	t.Helper()
	p := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range p.Pix {
		p.Pix[i] = byte(i*i/7) & 1
	}
	var b bytes.Buffer
	if err := gif.Encode(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGraphicsOf(t *testing.T) {
	for env, want := range map[string]graphics{"TERM=xterm-256color": noGraphics, "KITTY_WINDOW_ID=1": kittyGraphics,
		"TERM_PROGRAM=ghostty": kittyGraphics, "TERM_PROGRAM=iTerm.app": itermGraphics, "TERM_PROGRAM=WezTerm": itermGraphics,
		"TERM=xterm-kitty TMUX=/tmp/x": noGraphics, "": noGraphics} {
		if got := graphicsOf(strings.Fields(env)); got != want {
			t.Errorf("%q: %d, want %d", env, got, want)
		}
	}
}

// TestPicture shows a picture with each protocol: it has the rows and columns that it says, and a PNG.
func TestPicture(t *testing.T) {
	for _, row := range []struct {
		protocol            graphics
		width, height, rows int
		size                string
	}{
		{kittyGraphics, 80, 80, 10, "c=10,r=5"}, {kittyGraphics, 4000, 500, 10, "c=60,r=3"}, {kittyGraphics, 100, 4000, 10, "c=1,r=10"},
		{kittyGraphics, 3, 2, 10, "c=1,r=1"}, {itermGraphics, 80, 80, 10, "width=10;height=5"}, {kittyGraphics, 80, 80, 3, "c=6,r=3"},
	} {
		tr := newTranscript(newMarkdown(painter{}, false), 80, nil)
		tr.graphics, tr.pictureRows = row.protocol, row.rows
		lines := tr.picture(drawbridge.Image{MIMEType: "image/gif", Data: encoded(t, row.width, row.height)})
		if len(lines) != 2 || !strings.Contains(lines[1], row.size) || ansi.StringWidth(strings.TrimRight(lines[1], "\n")) > 2 {
			t.Errorf("%dx%d: %.80q, want %s", row.width, row.height, lines, row.size)
			continue
		}
		var code strings.Builder
		for part := range strings.SplitSeq(strings.NewReplacer("\x1b\\", "\x00", "\x07", "\x00", "\x1b_G", "\x00", "\x1b]", "\x00").Replace(lines[1]), "\x00") {
			if i := strings.LastIndexAny(part, ";:"); i >= 0 {
				code.WriteString(part[i+1:])
			}
		}
		data, err := base64.StdEncoding.DecodeString(code.String())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != row.width || c.Height != row.height {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// TestPicturesThatAreNotShown has what stays a line of text.
func TestPicturesThatAreNotShown(t *testing.T) {
	large := encoded(t, 5000, 5000)
	good := encoded(t, 10, 10)
	for name, row := range map[string]struct {
		protocol graphics
		rows     int
		data     []byte
	}{"no protocol": {noGraphics, 10, good}, "no room": {kittyGraphics, 1, good}, "too large": {kittyGraphics, 10, large},
		"no picture": {kittyGraphics, 10, []byte("\x1b_Ga=T;AAAA\x1b\\")}, "cut off": {kittyGraphics, 10, good[:len(good)-5]}} {
		tr := newTranscript(newMarkdown(painter{}, false), 80, nil)
		tr.graphics, tr.pictureRows = row.protocol, row.rows
		lines := tr.picture(drawbridge.Image{MIMEType: "image/\x1b]0;x\x07gif", Data: row.data})
		if len(lines) != 1 || strings.ContainsRune(lines[0], '\x1b') {
			t.Errorf("%s: %.80q", name, lines)
		}
	}
}

// TestPicturesArePrintedAtOnce takes lines from a printer with less room than they need.
func TestPicturesArePrintedAtOnce(t *testing.T) {
	p := newPrinter()
	p.chunk.Store(4)
	p.add([]string{"a", "b", "picture\n\n", "c", "larger\n\n\n\n\n", "d"}, false)
	var got []string
	for {
		chunk, _ := p.take()
		if chunk == nil {
			break
		}
		got = append(got, strings.ReplaceAll(strings.Join(chunk, " "), "\n", "/"))
	}
	if want := "a b|picture// c|larger/////|d"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
