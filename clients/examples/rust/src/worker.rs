//! A worker of Divan's job queue with ureq. It does what docs/jobs.md, "Worker kits", asks of a worker, except that it accepts and
//! reports each job by itself.

use serde_json::{json, Value};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// One attempt at a job.
pub struct Job {
    pub job_type: String,
    pub id: String,
    pub lock: String,
    pub epoch: u64,
    pub data: Value,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    aborted: Option<&'static str>,
    ending: bool, // its handler has returned, or its attempt has ended
}

impl Job {
    fn new(job: &Value) -> Job {
        let text = |name: &str| job[name].as_str().unwrap_or_default().to_string();
        let epoch = job["epoch"].as_u64().unwrap_or_default();
        Job { job_type: text("type"), id: text("id"), lock: text("lock"), epoch, data: job["data"].clone(), progress: Mutex::default() }
    }

    /// Why the handler should return: "cancel", "halt" or "stop". Its result is ignored, except after a cancel.
    pub fn aborted(&self) -> Option<&'static str> {
        self.progress.lock().unwrap().aborted
    }

    /// Whether the caller is the one that ends the attempt.
    fn end(&self) -> bool {
        !std::mem::replace(&mut self.progress.lock().unwrap().ending, true)
    }
}

pub enum Event<'a> {
    Online,
    Offline,
    Aborted(&'a Job, &'static str),
    Halt(&'a Job),
    Fail(&'a Job, &'a str),
}

pub enum Error {
    /// An error response of the server: its status.
    Refused(u16),
    /// No response, or an incomplete one: the outcome is not known.
    Lost,
}

impl Error {
    fn is_final(&self) -> bool {
        matches!(self, Error::Refused(status) if *status < 500)
    }
}

/// All functions may be called by any thread, but not by `on`.
pub struct Worker {
    pub url: String,
    pub authorization: String, // as of `basic`
    pub role: String,
    pub id: String,
    pub types: Vec<String>,
    pub concurrency: usize,
    pub timeout: Duration,
    pub check: Duration,
    pub poll: Duration,
    pub handle: fn(&Worker, &Job) -> Result<Value, String>,
    pub on: fn(Event),
    pub state: State,
}

pub struct State {
    agent: ureq::Agent,
    shared: Mutex<Shared>,
    changed: Condvar,
}

impl State {
    /// `timeout`: the worker's.
    pub fn new(timeout: Duration) -> State {
        State { agent: ureq::AgentBuilder::new().timeout_read(timeout).build(), shared: Mutex::default(), changed: Condvar::new() }
    }
}

#[derive(Default)]
struct Shared {
    incarnation: String,
    up: bool,
    stopping: bool,
    leaving: bool,
    done: bool,
    running: HashMap<String, Arc<Job>>, // by lock
    fatal: Option<(u16, String)>,
}

/// The header field of a name and password.
pub fn basic(name: &str, password: &str) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "Basic ".to_string();
    for part in format!("{}:{}", name, password).as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(*part.get(i).unwrap_or(&0)));
        let digit = |i: usize| char::from(digits[(bits >> (18 - 6 * i)) as usize & 63]);
        text.extend((0..4).map(|i| if i <= part.len() { digit(i) } else { '=' }));
    }
    text
}

impl Shared {
    /// The jobs that handlers run, by type.
    fn handled(&self) -> HashMap<String, Vec<Arc<Job>>> {
        let mut by_type = HashMap::<String, Vec<Arc<Job>>>::new();
        for job in self.running.values() {
            if !job.progress.lock().unwrap().ending {
                by_type.entry(job.job_type.clone()).or_default().push(job.clone());
            }
        }
        by_type
    }
}

fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{:02X}", byte) }).collect()
}

/// The locks of jobs, as the bulk requests have them.
fn locks(jobs: &[Arc<Job>]) -> Value {
    json!({ "jobs": jobs.iter().map(|job| json!({"id": job.id, "lock": job.lock})).collect::<Vec<_>>() })
}

fn jobs_of(job_type: &str) -> String {
    format!("/_jobs/{}", escape(job_type))
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MINUTE: Duration = Duration::from_secs(60);
const LAST: Duration = Duration::from_secs(5); // of each request of `stop`

impl Worker {
    fn path(&self) -> String {
        format!("/_workers/{}/{}", escape(&self.role), escape(&self.id))
    }

    /// Returns a successful response. `limit`: of the whole request; without it, of each read.
    fn send(&self, limit: Option<Duration>, method: &str, path: &str, body: &Value) -> Result<impl Read, Error> {
        let url = format!("{}{}", self.url, path);
        let mut request = self.state.agent.request(method, &url).set("Authorization", &self.authorization);
        request = match limit {
            Some(limit) => request.timeout(limit),
            None => request,
        };
        let result = match body {
            Value::Null => request.call(),
            body => request.set("Content-Type", "application/json").send_string(&body.to_string()),
        };
        let (status, response) = match result {
            Ok(response) => return Ok(response.into_reader()),
            Err(ureq::Error::Status(status, response)) => (status, response),
            Err(ureq::Error::Transport(_)) => return Err(Error::Lost),
        };
        let refusal: Value = serde_json::from_reader(response.into_reader()).unwrap_or_default();
        let error = refusal["error"].as_str().unwrap_or_default().to_string();
        // A retry does not help, nor for a timeout that is too short.
        if status == 401 || status == 403 || error == "no_such_job_type" || status == 400 && path.ends_with("/_hold") {
            self.set(|shared| (shared.fatal, shared.done) = (Some((status, error)), true));
        }
        Err(Error::Refused(status))
    }

    fn call(&self, limit: Duration, method: &str, path: &str, body: &Value) -> Result<Value, Error> {
        serde_json::from_reader(self.send(Some(limit), method, path, body)?).map_err(|_| Error::Lost)
    }

    fn set<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let result = change(&mut self.state.shared.lock().unwrap());
        self.state.changed.notify_all();
        result
    }

    fn is_done(&self) -> bool {
        self.state.shared.lock().unwrap().done
    }

    /// Ends an attempt that the server has ended, or will.
    fn abort(&self, shared: &mut Shared, job: &Job, reason: &'static str) {
        let mut progress = job.progress.lock().unwrap();
        if progress.ending || progress.aborted == Some(reason) {
            return;
        }
        let is_first = progress.aborted.is_none();
        progress.aborted = Some(progress.aborted.unwrap_or(reason));
        if reason != "cancel" {
            progress.ending = true;
            shared.running.remove(&job.lock);
        }
        drop(progress);
        if is_first {
            (self.on)(Event::Aborted(job, reason));
        }
        if reason == "halt" {
            (self.on)(Event::Halt(job));
        }
    }

    /// The registration has ended, and with it all of its attempts.
    fn lose(&self, shared: &mut Shared) {
        (shared.incarnation, shared.up) = (String::new(), false);
        for job in shared.running.values().cloned().collect::<Vec<_>>() {
            self.abort(shared, &job, "halt");
        }
    }

    /// Holds a connection, and sends heartbeats beside it, until it ends.
    fn hold(self: &Arc<Self>) {
        let mut body = json!({"timeout": self.timeout.as_millis() as u64});
        let incarnation = self.set(|shared| shared.incarnation.clone());
        if !incarnation.is_empty() {
            body["incarnation"] = json!(incarnation);
        }
        let ended = Arc::new(AtomicBool::new(false));
        if let Ok(response) = self.send(None, "POST", &format!("{}/_hold", self.path()), &body) {
            // Empty lines, three per timeout, show that the server is alive.
            for line in BufReader::new(response).lines().map_while(Result::ok).take_while(|_| !ended.load(Relaxed)) {
                self.receive(&serde_json::from_str(&line).unwrap_or_default(), &ended);
            }
        }
        ended.store(true, Relaxed);
    }

    fn receive(self: &Arc<Self>, line: &Value, ended: &Arc<AtomicBool>) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let incarnation = text(&line["incarnation"]);
        self.set(|shared| {
            if let Some(job) = shared.running.get(&text(&line["halt"]["lock"])).cloned() {
                self.abort(shared, &job, "halt");
            }
            let is_new = !incarnation.is_empty() && incarnation != shared.incarnation;
            if line.get("error").is_some() || is_new && !shared.incarnation.is_empty() {
                self.lose(shared);
            }
            if !incarnation.is_empty() {
                (shared.incarnation, shared.up) = (incarnation.clone(), true);
                (self.on)(Event::Online);
                let (worker, ended) = (self.clone(), ended.clone());
                thread::spawn(move || worker.beat(&incarnation, &ended));
            }
        });
    }

    fn beat(&self, incarnation: &str, ended: &AtomicBool) {
        let mut heard = Instant::now();
        while !ended.load(Relaxed) {
            thread::sleep(self.timeout / 3);
            if self.is_done() {
                ended.store(true, Relaxed);
            }
            match self.call(self.timeout / 3, "POST", &format!("{}/_heartbeat", self.path()), &json!({ "incarnation": incarnation })) {
                Ok(_) => heard = Instant::now(),
                // The next registration shows whether the jobs are lost.
                Err(Error::Refused(409)) => ended.store(true, Relaxed),
                Err(_) if heard.elapsed() > self.timeout => ended.store(true, Relaxed),
                Err(_) => {}
            }
        }
    }

    /// The pause after another failure: up to half the timeout.
    fn longer(&self, pause: Duration) -> Duration {
        (pause * 2).min(self.timeout / 2)
    }

    /// Runs jobs one after the other.
    fn slot(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let shared = self.state.shared.lock().unwrap();
            let shared = self.state.changed.wait_while(shared, |shared| !shared.up && !shared.stopping && !shared.done).unwrap();
            let (incarnation, stopping) = (shared.incarnation.clone(), shared.stopping || shared.done);
            drop(shared);
            if stopping {
                return;
            }
            let worker = json!({"role": self.role, "id": self.id, "incarnation": incarnation});
            let request = json!({"types": self.types, "timeout": self.poll.as_millis() as u64, "worker": worker});
            match self.call(self.poll + MINUTE, "POST", "/_jobs/_accept", &request) {
                Ok(accepted) => {
                    pause = FIRST_PAUSE;
                    accepted["jobs"].as_array().into_iter().flatten().for_each(|job| self.accept(Job::new(job), &incarnation));
                }
                Err(error) => {
                    if !error.is_final() {
                        self.find_lost();
                    }
                    thread::sleep(pause);
                    pause = self.longer(pause);
                }
            }
        }
    }

    fn accept(&self, job: Job, incarnation: &str) {
        let job = Arc::new(job);
        let (is_lost, is_late) = self.set(|shared| {
            let is_lost = shared.incarnation != incarnation; // the server has reclaimed it
            if !is_lost && !shared.stopping {
                shared.running.insert(job.lock.clone(), job.clone());
            }
            (is_lost, shared.stopping)
        });
        if is_late {
            self.release(&job.job_type, &[job.clone()]);
        } else if !is_lost {
            self.run(&job);
        }
    }

    /// A response without jobs may have accepted some. If the server has jobs of this worker that it does not know, it registers again.
    fn find_lost(&self) {
        let name = |job: &Job| (job.id.clone(), job.epoch);
        for job_type in &self.types {
            let incarnation = self.set(|shared| shared.incarnation.clone());
            // A worker has fewer slots.
            let path = format!("{}/_jobs?limit=1000&type={}", self.path(), escape(&json!(job_type).to_string()));
            let mut pause = FIRST_PAUSE;
            let list = loop {
                match self.call(MINUTE, "GET", &path, &Value::Null) {
                    Ok(list) => break list,
                    Err(_) if self.is_done() => return,
                    Err(_) => thread::sleep(pause),
                }
                pause = self.longer(pause);
            };
            let known: HashSet<_> =
                self.set(|shared| shared.running.values().filter(|job| job.job_type == *job_type).map(|job| name(job)).collect());
            if list["jobs"].as_array().into_iter().flatten().any(|job| !known.contains(&name(&Job::new(job)))) {
                // The held connection receives its end.
                let _ = self.call(MINUTE, "DELETE", &format!("{}?incarnation={}", self.path(), incarnation), &Value::Null);
                return;
            }
        }
    }

    fn run(&self, job: &Arc<Job>) {
        let result = catch_unwind(AssertUnwindSafe(|| (self.handle)(self, job)));
        let result = result.unwrap_or_else(|_| Err("the handler has panicked".to_string()));
        if !job.end() {
            return;
        }
        let (report, action) = match &result {
            Ok(result) => (json!({"id": job.id, "lock": job.lock, "result": result}), "/_finish"),
            Err(error) => (json!({"id": job.id, "lock": job.lock, "error": error}), "/_fail"),
        };
        if let Err(error) = &result {
            (self.on)(Event::Fail(job, error));
        }
        let (mut again, mut pause) = (false, FIRST_PAUSE);
        while !self.is_done() {
            let (is_final, is_refused) = match self.call(MINUTE, "POST", &(jobs_of(&job.job_type) + action), &json!({ "jobs": [report] })) {
                Ok(results) => (results[0]["status"].as_u64().unwrap_or_default() < 500, results[0].get("error").is_some()),
                Err(error) => (error.is_final(), true),
            };
            if is_final {
                if is_refused && !(again && result.is_ok() && self.was_finished(job)) {
                    (self.on)(Event::Halt(job));
                }
                break;
            }
            thread::sleep(pause); // the outcome is not known: send it again
            (again, pause) = (true, self.longer(pause));
        }
        self.set(|shared| shared.running.remove(&job.lock));
    }

    /// Whether an earlier report, whose response was lost, has succeeded.
    fn was_finished(&self, job: &Job) -> bool {
        let path = format!("{}/{}", jobs_of(&job.job_type), escape(&job.id));
        let found = self.call(MINUTE, "GET", &path, &Value::Null).unwrap_or_default();
        let attempt = found["history"].as_array().into_iter().flatten().find(|attempt| attempt["epoch"] == job.epoch);
        attempt.map_or(false, |attempt| attempt["outcome"] == "finished" || attempt["outcome"] == "cancelled")
    }

    /// Checks whether running jobs were cancelled or lost.
    fn check(&self) {
        for (job_type, jobs) in self.set(|shared| shared.handled()) {
            // If it fails, the next check may succeed.
            let flags = self.call(MINUTE, "POST", &(jobs_of(&job_type) + "/_update"), &locks(&jobs)).unwrap_or_default();
            self.set(|shared| {
                for (flag, job) in flags.as_array().into_iter().flatten().zip(&jobs) {
                    if flag["error"] == "halt" {
                        self.abort(shared, job, "halt");
                    } else if flag["cancel"] == true {
                        self.abort(shared, job, "cancel");
                    }
                }
            });
        }
    }

    /// Returns jobs of one type to the queue.
    fn release(&self, job_type: &str, jobs: &[Arc<Job>]) {
        let _ = self.call(LAST, "POST", &(jobs_of(job_type) + "/_release"), &locks(jobs));
    }

    /// Runs jobs until `stop`, or an error for which a retry is useless: its status and code.
    pub fn run_jobs(self: &Arc<Self>) -> Result<(), (u16, String)> {
        for _ in 0..self.concurrency {
            let worker = self.clone();
            thread::spawn(move || worker.slot());
        }
        let worker = self.clone();
        thread::spawn(move || {
            while !worker.is_done() {
                worker.check();
                thread::sleep(worker.check);
            }
        });
        let worker = self.clone();
        thread::spawn(move || {
            let mut pause = FIRST_PAUSE;
            loop {
                worker.hold();
                let (was_up, over) = worker.set(|shared| (std::mem::take(&mut shared.up), shared.leaving || shared.done));
                if over {
                    return;
                }
                (worker.on)(Event::Offline);
                pause = if was_up { FIRST_PAUSE } else { worker.longer(pause) };
                thread::sleep(pause);
            }
        });
        let mut shared = self.state.changed.wait_while(self.state.shared.lock().unwrap(), |shared| !shared.done).unwrap();
        shared.fatal.take().map_or(Ok(()), Err)
    }

    /// Accepts no more jobs, releases those that run longer than the limit, and ends the registration.
    pub fn stop(&self, limit: Duration) {
        self.set(|shared| shared.stopping = true);
        self.wait_for_jobs(limit);
        let handled = self.set(|shared| {
            let handled = shared.handled();
            handled.values().flatten().for_each(|job| self.abort(shared, job, "stop"));
            handled
        });
        for (job_type, jobs) in handled {
            self.release(&job_type, &jobs);
        }
        self.wait_for_jobs(LAST); // that are being reported
        let incarnation = self.set(|shared| {
            shared.leaving = true;
            shared.incarnation.clone()
        });
        let _ = self.call(LAST, "DELETE", &format!("{}?incarnation={}", self.path(), incarnation), &Value::Null);
        self.set(|shared| shared.done = true);
    }

    fn wait_for_jobs(&self, limit: Duration) {
        let shared = self.state.shared.lock().unwrap();
        drop(self.state.changed.wait_timeout_while(shared, limit, |shared| !shared.running.is_empty()));
    }
}
