// A worker of Divan's job queue with Go's standard library alone. It does what docs/jobs.md, "Worker kits", asks of a worker, except
// that it accepts and reports each job by itself.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

type object = map[string]any

// Job is one attempt at a job.
type Job struct {
	Type, ID, Lock string
	Epoch          int64
	Data           json.RawMessage
	Aborted        chan struct{} // closed when the handler should stop; Reason is "cancel", "halt" or "stop" then
	Reason         string
	ending         bool // its handler has returned, or its attempt has ended
}

var ErrAborted = errors.New("the job was aborted") // returned by a handler that has stopped for its job's Reason

// Error is an error response of the server.
type Error struct {
	Status       int
	Code, Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Reason) }

type Worker struct {
	URL, Role, ID        string // the server, with NAME:PASSWORD@; the worker's name
	Types                []string
	Concurrency          int
	Timeout, Check, Poll time.Duration
	Handle               func(*Job) (any, error)
	On                   func(event string, job *Job, err error) // online, offline, halt, fail

	mu                          sync.Mutex
	changed                     *sync.Cond
	incarnation                 string
	up, stopping, leaving, done bool
	running                     map[string]*Job // by lock
	fatal                       error
}

func (w *Worker) path() string {
	return "/_workers/" + url.PathEscape(w.Role) + "/" + url.PathEscape(w.ID)
}
func path(t string) string { return "/_jobs/" + url.PathEscape(t) }

func (w *Worker) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, w.URL+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode < 300 {
		return response, err
	}
	defer response.Body.Close()
	var refusal struct{ Error, Reason string }
	json.NewDecoder(response.Body).Decode(&refusal)
	failure := &Error{response.StatusCode, refusal.Error, refusal.Reason}
	if failure.Status == 401 || failure.Status == 403 || failure.Code == "no_such_job_type" {
		w.giveUp(failure)
	}
	return nil, failure
}

// A retry does not help.
func (w *Worker) giveUp(failure *Error) { w.set(func() { w.fatal, w.done = failure, true }) }

func (w *Worker) call(limit time.Duration, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	response, err := w.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (w *Worker) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.changed.Broadcast()
}

// Ends an attempt that the server has ended, or will. Its handler's result is ignored, except after a cancel.
func (w *Worker) abort(job *Job, reason string) {
	if job.ending || job.Reason == reason {
		return
	}
	if job.Reason == "" {
		job.Reason = reason
		close(job.Aborted)
	}
	if reason != "cancel" {
		job.ending = true
		delete(w.running, job.Lock)
	}
	if reason == "halt" {
		w.On("halt", job, nil)
	}
}

// The registration has ended, and with it all of its attempts.
func (w *Worker) lose() {
	w.incarnation, w.up = "", false
	for _, job := range w.running {
		w.abort(job, "halt")
	}
}

// Holds a connection, and sends heartbeats beside it, until it ends.
func (w *Worker) hold() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	body := object{"timeout": w.Timeout.Milliseconds()}
	if w.incarnation != "" {
		body["incarnation"] = w.incarnation
	}
	response, err := w.send(ctx, "POST", w.path()+"/_hold", body)
	if err != nil {
		var failure *Error
		if errors.As(err, &failure) && failure.Status == 400 { // such as a timeout that is too short
			w.giveUp(failure)
		}
		return err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		var line struct {
			Incarnation, Error string
			Halt               struct{ Lock string }
		}
		json.Unmarshal(lines.Bytes(), &line) // empty lines show that the server is alive
		w.set(func() {
			if job := w.running[line.Halt.Lock]; job != nil {
				w.abort(job, "halt")
			}
			if line.Error != "" || line.Incarnation != "" && w.incarnation != "" && line.Incarnation != w.incarnation {
				w.lose()
			}
			if line.Incarnation != "" {
				w.incarnation, w.up = line.Incarnation, true
				w.On("online", nil, nil)
				go w.beat(ctx, cancel, line.Incarnation)
			}
		})
	}
	return errors.New("the held connection has ended")
}

func (w *Worker) beat(ctx context.Context, cancel func(), incarnation string) {
	for heard := time.Now(); ctx.Err() == nil; {
		if w.isDone() {
			cancel()
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.Timeout / 3):
		}
		var failure *Error
		err := w.call(w.Timeout/3, "POST", w.path()+"/_heartbeat", object{"incarnation": incarnation}, &object{})
		if err == nil {
			heard = time.Now()
		} else if errors.As(err, &failure) && failure.Status == 409 || time.Since(heard) > w.Timeout {
			cancel() // the next registration shows whether the jobs are lost
		}
	}
}

// Runs jobs one after the other.
func (w *Worker) slot() {
	for pause := time.Duration(0); ; {
		time.Sleep(pause)
		w.mu.Lock()
		for !w.up && !w.stopping && !w.done {
			w.changed.Wait()
		}
		incarnation, stopping := w.incarnation, w.stopping || w.done
		w.mu.Unlock()
		if stopping {
			return
		}
		var accepted struct{ Jobs []*Job }
		worker := object{"role": w.Role, "id": w.ID, "incarnation": incarnation}
		request := object{"types": w.Types, "timeout": w.Poll.Milliseconds(), "worker": worker}
		if err := w.call(w.Poll+30*time.Second, "POST", "/_jobs/_accept", request, &accepted); err != nil {
			w.findLost(err)
			pause = w.longer(pause)
			continue
		}
		pause = 0
		for _, job := range accepted.Jobs {
			job.Aborted = make(chan struct{})
			late := false
			w.set(func() {
				if w.incarnation != incarnation { // the server has reclaimed it
					job.ending = true
					return
				}
				if late = w.stopping; !late {
					w.running[job.Lock] = job
				}
			})
			if late {
				w.release(job.Type, []any{object{"id": job.ID, "lock": job.Lock}})
			} else if !job.ending {
				w.run(job)
			}
		}
	}
}

// The pause after another failure: up to half the timeout.
func (w *Worker) longer(pause time.Duration) time.Duration {
	if pause *= 2; pause < time.Second/10 {
		return time.Second / 10
	} else if pause > w.Timeout/2 {
		return w.Timeout / 2
	}
	return pause
}

// A response without jobs may have accepted some. If the server has jobs of this worker that it does not know, it registers again.
func (w *Worker) findLost(err error) {
	var failure *Error
	if errors.As(err, &failure) && failure.Status < 500 {
		return
	}
	type name struct {
		Type, ID string
		Epoch    int64
	}
	for _, t := range w.Types {
		w.mu.Lock()
		incarnation := w.incarnation
		w.mu.Unlock()
		var list struct {
			Jobs []struct {
				ID    string
				Epoch int64
			}
		}
		text, _ := json.Marshal(t)
		query := url.Values{"type": {string(text)}, "limit": {"1000"}}.Encode() // a worker has fewer slots
		for pause := w.longer(0); w.call(10*time.Second, "GET", w.path()+"/_jobs?"+query, nil, &list) != nil; pause = w.longer(pause) {
			if w.isDone() {
				return
			}
			time.Sleep(pause)
		}
		w.mu.Lock()
		known := map[name]bool{}
		for _, job := range w.running {
			known[name{job.Type, job.ID, job.Epoch}] = true
		}
		w.mu.Unlock()
		for _, job := range list.Jobs {
			if !known[name{t, job.ID, job.Epoch}] { // the held connection receives its end
				w.call(10*time.Second, "DELETE", w.path()+"?incarnation="+incarnation, nil, &object{})
				return
			}
		}
	}
}

func (w *Worker) run(job *Job) {
	result, err := w.Handle(job)
	over := false
	w.set(func() { over, job.ending = job.ending, true })
	if over {
		return
	}
	report, action := object{"id": job.ID, "lock": job.Lock, "result": result}, "/_finish"
	if err != nil && err != ErrAborted {
		report, action = object{"id": job.ID, "lock": job.Lock, "error": err.Error()}, "/_fail"
		w.On("fail", job, err)
	}
	for again := false; !w.isDone(); again = true {
		var results []struct {
			Error  string
			Status int
		}
		err := w.call(time.Minute, "POST", path(job.Type)+action, object{"jobs": []any{report}}, &results)
		var failure *Error
		refused := errors.As(err, &failure) && failure.Status < 500
		if refused || err == nil && len(results) == 1 && results[0].Status < 500 {
			if refused || results[0].Error != "" && !(again && action == "/_finish" && w.wasFinished(job)) {
				w.On("halt", job, err)
			}
			break
		}
		time.Sleep(time.Second / 10) // the outcome is not known: send it again
	}
	w.set(func() { delete(w.running, job.Lock) })
}

// Whether an earlier report, whose response was lost, has succeeded.
func (w *Worker) wasFinished(job *Job) bool {
	var found struct {
		History []struct {
			Epoch   int64
			Outcome string
		}
	}
	w.call(time.Minute, "GET", path(job.Type)+"/"+url.PathEscape(job.ID), nil, &found)
	for _, attempt := range found.History {
		if attempt.Epoch == job.Epoch {
			return attempt.Outcome == "finished" || attempt.Outcome == "cancelled"
		}
	}
	return false
}

// The jobs that handlers run by type, and their locks as the bulk requests have them. The caller holds the mutex.
func (w *Worker) attempts() (map[string][]*Job, map[string][]any) {
	jobs, locks := map[string][]*Job{}, map[string][]any{}
	for _, job := range w.running {
		if !job.ending {
			jobs[job.Type] = append(jobs[job.Type], job)
			locks[job.Type] = append(locks[job.Type], object{"id": job.ID, "lock": job.Lock})
		}
	}
	return jobs, locks
}

// Checks whether running jobs were cancelled or lost.
func (w *Worker) check() {
	w.mu.Lock()
	jobs, locks := w.attempts()
	w.mu.Unlock()
	for t, some := range jobs {
		var flags []struct {
			Cancel bool
			Error  string
		}
		if w.call(time.Minute, "POST", path(t)+"/_update", object{"jobs": locks[t]}, &flags) != nil || len(flags) != len(some) {
			continue // the next check may succeed
		}
		w.set(func() {
			for i, job := range some {
				if flags[i].Error == "halt" {
					w.abort(job, "halt")
				} else if flags[i].Cancel {
					w.abort(job, "cancel")
				}
			}
		})
	}
}

// Returns jobs of one type to the queue.
func (w *Worker) release(t string, locks []any) {
	w.call(5*time.Second, "POST", path(t)+"/_release", object{"jobs": locks}, &[]any{})
}

func (w *Worker) isDone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// Run runs jobs until Stop, or an error for which a retry is useless.
func (w *Worker) Run() error {
	w.changed, w.running = sync.NewCond(&w.mu), map[string]*Job{}
	for i := 0; i < w.Concurrency; i++ {
		go w.slot()
	}
	go func() {
		for ; !w.isDone(); time.Sleep(w.Check) {
			w.check()
		}
	}()
	go func() {
		for pause := w.longer(0); ; time.Sleep(pause) {
			err := w.hold()
			over := false
			w.set(func() {
				pause = w.longer(pause)
				if w.up {
					pause = w.longer(0)
				}
				w.up, over = false, w.leaving || w.done
			})
			if over {
				return
			}
			w.On("offline", nil, err)
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.done {
		w.changed.Wait()
	}
	return w.fatal
}

// Stop accepts no more jobs, releases those that run longer than the limit, and ends the registration.
func (w *Worker) Stop(limit time.Duration) {
	w.set(func() { w.stopping = true })
	w.waitForJobs(limit)
	locks := map[string][]any{}
	w.set(func() {
		var jobs map[string][]*Job
		jobs, locks = w.attempts()
		for _, some := range jobs {
			for _, job := range some {
				w.abort(job, "stop")
			}
		}
	})
	for t, some := range locks {
		w.release(t, some)
	}
	w.waitForJobs(5 * time.Second) // that are being reported
	incarnation := ""
	w.set(func() { w.leaving, incarnation = true, w.incarnation })
	w.call(5*time.Second, "DELETE", w.path()+"?incarnation="+incarnation, nil, &object{})
	w.set(func() { w.done = true })
}

func (w *Worker) waitForJobs(limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Second / 100) {
		w.mu.Lock()
		idle := len(w.running) == 0
		w.mu.Unlock()
		if idle {
			return
		}
	}
}
