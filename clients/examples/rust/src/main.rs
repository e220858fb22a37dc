//! The program that test/kits_test.mjs directs (test/kits/README.md), as an example of a handler.

mod worker;

use serde_json::{json, Value};
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use worker::{Event, Job, State, Worker};

static PROCEED: AtomicBool = AtomicBool::new(false);

fn handle(worker: &Worker, job: &Job) -> Result<Value, String> {
    println!("ran {}", job.id);
    let task = job.data["do"].as_str().unwrap_or_default();
    if task == "throw" {
        return Err("no luck".to_string());
    }
    while (task == "hold" || task == "stubborn") && !PROCEED.load(Relaxed) {
        if task == "hold" && job.aborted().is_some() {
            return Ok(Value::Null);
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(json!({"by": worker.id, "epoch": job.epoch}))
}

fn report(event: Event) {
    match event {
        Event::Online => println!("online"),
        Event::Offline => println!("offline"),
        Event::Aborted(job, reason) => println!("aborted {} {}", job.id, reason),
        Event::Halt(job) => println!("halt {}", job.id),
        Event::Fail(job, error) => println!("fail {} {}", job.id, error),
    }
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits: String = if byte == b'%' { rest.by_ref().take(2).map(char::from).collect() } else { String::new() };
        bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let options: Value = serde_json::from_str(&arguments[2]).expect("options");
    let settings = &options["worker"];
    let milliseconds = |name: &str, standard| Duration::from_millis(settings[name].as_u64().unwrap_or(standard));
    let role = options["type"].as_str().unwrap_or("worker").to_string();
    let types = options["types"].as_array().map(|types| types.iter().filter_map(|each| each.as_str().map(String::from)).collect());
    // http://NAME:PASSWORD@HOST
    let (scheme, rest) = arguments[1].split_once("://").expect("a URL");
    let (user, host) = rest.rsplit_once('@').expect("NAME:PASSWORD@ in the URL");
    let (name, password) = user.split_once(':').expect("a password in the URL");
    let timeout = milliseconds("timeout", 15_000);
    let worker = Arc::new(Worker {
        url: format!("{}://{}", scheme, host),
        authorization: worker::basic(&unescaped(name), &unescaped(password)),
        types: types.unwrap_or_else(|| vec![role.clone()]),
        role,
        id: settings["id"].as_str().map_or_else(|| format!("rust-{}", std::process::id()), String::from),
        concurrency: options["concurrency"].as_u64().unwrap_or(1) as usize,
        timeout,
        check: milliseconds("checkInterval", 1_000),
        poll: milliseconds("pollTimeout", 30_000),
        handle,
        on: report,
        state: State::new(timeout),
    });
    let directed = worker.clone();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().flatten() {
            if line == "go" {
                PROCEED.store(true, Relaxed);
            } else if let Some(limit) = line.strip_prefix("stop ") {
                println!("stopping");
                let (worker, limit) = (directed.clone(), Duration::from_millis(limit.parse().unwrap_or(0)));
                thread::spawn(move || worker.stop(limit));
            }
        }
    });
    match worker.run_jobs() {
        Err((status, error)) => println!("error DivanError {} {}", status, error),
        Ok(()) => println!("stopped"),
    }
}
