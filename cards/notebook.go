package cards

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxCellOutput is the maximum number of bytes shown of one output of a notebook cell.
const maxCellOutput = 4 << 10

// notebookFile is the part of a Jupyter notebook (nbformat 4) that is shown.
type notebookFile struct {
	Cells []struct {
		Type    string        `json:"cell_type"`
		Source  notebookText  `json:"source"`
		Outputs []notebookOut `json:"outputs"`
	} `json:"cells"`
}

type notebookOut struct {
	Text      notebookText               `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Name      string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// notebookText is a text, or a list of its lines.
type notebookText string

// UnmarshalJSON joins a list of lines.
func (t *notebookText) UnmarshalJSON(data []byte) error {
	var lines []string
	if err := json.Unmarshal(data, &lines); err == nil {
		*t = notebookText(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// readNotebook returns the cells of a notebook as text, with its images as content blocks. in.Offset is the number of
// the first cell, in.Limit the number of cells.
func readNotebook(r io.Reader, out readOutput, in readInput) (answer Answer[readOutput], err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxNotebookBytes))
	if err != nil {
		return answer, fileError("read", out.Path, err)
	}
	var book notebookFile
	if err := json.Unmarshal(data, &book); err != nil {
		return readLines(strings.NewReader(string(data)), out, in) // it is not a notebook, and is shown as text
	}
	first, last := max(in.Offset, 1), len(book.Cells)
	if in.Limit > 0 {
		last = min(last, first+in.Limit-1)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is a notebook with %d cells.\n", out.Path, len(book.Cells))
	shown := 0
	for i := first - 1; i < last && b.Len() < maxReadBytes; i++ {
		cell := book.Cells[i]
		fmt.Fprintf(&b, "\n[%d] %s\n%s\n", i+1, cell.Type, cutText(string(cell.Source), maxReadBytes))
		for _, output := range cell.Outputs {
			if text := output.text(); text != "" {
				fmt.Fprintf(&b, "-> %s\n", cutText(text, maxCellOutput))
			}
			answer.Blocks = append(answer.Blocks, output.images(len(answer.Blocks))...)
		}
		shown++
	}
	out.Kind, out.Lines = "notebook", len(book.Cells)
	if shown > 0 {
		out.First, out.Last = first, first+shown-1
	}
	out.Cut = first+shown-1 < last
	answer.Text, answer.Value = b.String(), out
	return answer, nil
}

// text returns the text of an output: its error, its plain text or its stream.
func (o notebookOut) text() string {
	if o.Name != "" {
		return o.Name + ": " + o.Value
	}
	var plain notebookText
	if raw, ok := o.Data["text/plain"]; ok && json.Unmarshal(raw, &plain) == nil {
		return string(plain)
	}
	return string(o.Text)
}

// maxNotebookImages is the maximum number of images shown of a notebook.
const maxNotebookImages = 10

// images returns the images of an output as content blocks. shown is the number of images already shown; there are at
// most maxNotebookImages in total.
func (o notebookOut) images(shown int) (blocks []json.RawMessage) {
	for _, mimeType := range []string{"image/png", "image/jpeg"} {
		var data notebookText
		raw, ok := o.Data[mimeType]
		if !ok || shown+len(blocks) >= maxNotebookImages || json.Unmarshal(raw, &data) != nil ||
			len(data) > maxImageBytes {
			continue
		}
		blocks = append(blocks, imageBlock(strings.Join(strings.Fields(string(data)), ""), mimeType))
	}
	return slices.Clip(blocks)
}

// cutText returns at most n bytes of a text. If it omits bytes, it adds a note with their number.
func cutText(text string, n int) string {
	if len(text) <= n {
		return strings.TrimRight(text, "\n")
	}
	kept := strings.ToValidUTF8(text[:n], "")
	return kept + fmt.Sprintf("\n[%d bytes elided to stay within the output ceiling]", len(text)-len(kept))
}
