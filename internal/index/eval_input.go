package index

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// An EvalError is an error of the user in an evaluation. It is an invalid line in a file of tools or questions, or an
// unknown name of an arm (see Arms).
type EvalError struct{ text string }

// Error returns the text of the error.
func (e *EvalError) Error() string { return e.text }

// A toolRow is one line of a file of tools.
type toolRow struct {
	ID          string          `json:"id"`
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// An EvalQuery is a question of an evaluation: one line of a file of questions.
type EvalQuery struct {
	ID    string `json:"id"`
	Query string `json:"query"`
	// Kind is the name of a class of questions; each class has its own score. Kind may be empty.
	Kind string `json:"kind"`
	// Gold contains the IDs of the tools that the question needs. If several tools are equally suitable, Groups is
	// used instead of Gold: the question needs one tool of each group.
	Gold   []string   `json:"gold"`
	Groups [][]string `json:"groups"`
}

// NeededGroups returns Groups. If Groups is empty, it returns a group with one tool for each tool in Gold. The
// question needs one tool of each group.
func (q EvalQuery) NeededGroups() [][]string {
	if len(q.Groups) > 0 {
		return q.Groups
	}
	var all [][]string
	for _, id := range q.Gold {
		all = append(all, []string{id})
	}
	return all
}

// ReadEvalTools reads a file of tools with one JSON object on each line. The members of an object are id, server,
// name, title, description and inputSchema; id and name are required. If a line is invalid, the error is an
// [EvalError] that names the file and the line.
func ReadEvalTools(name string, from io.Reader) ([]Document, error) {
	rows, err := readRows[toolRow](name, from, func(t toolRow) (string, error) {
		if t.Name == "" {
			return t.ID, errors.New("it has no name")
		}
		return t.ID, nil
	})
	all := make([]Document, len(rows))
	for i, t := range rows {
		all[i] = Document{ID: t.ID, Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description,
			Schema: t.InputSchema}
	}
	return all, err
}

// ReadEvalQueries reads a file of questions with one JSON object on each line. The members of an object are id,
// query, kind, gold and groups; id and query are required. If a line is invalid, the error is an [EvalError] that
// names the file and the line.
func ReadEvalQueries(name string, from io.Reader) ([]EvalQuery, error) {
	return readRows[EvalQuery](name, from, func(q EvalQuery) (string, error) {
		if q.Query == "" {
			return q.ID, errors.New("it has no query")
		}
		for _, group := range q.Groups {
			if len(group) == 0 {
				return q.ID, errors.New("one of its groups has no tool")
			}
		}
		return q.ID, nil
	})
}

// maxRowBytes is the maximum length of a line in bytes.
const maxRowBytes = 16 << 20

// readRows decodes each line as a JSON object and skips empty lines. The function check returns the ID of an object,
// and an error if the object is invalid. IDs must be unique.
func readRows[T any](name string, from io.Reader, check func(T) (id string, err error)) ([]T, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxRowBytes)
	var rows []T
	at, lineOf := 0, map[string]int{}
	for lines.Scan() {
		at++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		var row T
		if text[0] != '{' {
			return nil, rowError(name, at, errors.New("the row is not a JSON object"))
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return nil, rowError(name, at, jsonTypeError(err))
		}
		id, err := check(row)
		switch {
		case id == "":
			return nil, rowError(name, at, errors.New("it has no id"))
		case err != nil:
			return nil, rowError(name, at, err)
		case lineOf[id] > 0:
			return nil, rowError(name, at, fmt.Errorf("the id %q stands in line %d too", id, lineOf[id]))
		}
		lineOf[id] = at
		rows = append(rows, row)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, rowError(name, at+1, fmt.Errorf("it is longer than %d bytes", maxRowBytes))
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(rows) == 0:
		return nil, &EvalError{name + ": it has no rows"}
	}
	return rows, nil
}

// jsonTypeError returns a JSON error whose text contains no names of Go types.
func jsonTypeError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is of the wrong kind: %s", wrong.Field, wrong.Value)
	}
	return err
}

func rowError(name string, line int, err error) error {
	return &EvalError{fmt.Sprintf("%s:%d: %v", name, line, err)}
}
